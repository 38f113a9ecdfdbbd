package schemas

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/schemas/pattern"
)

// Bounds of the payloads that are known.
const (
	MaxIntentPath      = 4095  // bytes of a path, as a system call takes it
	MaxIntentComponent = 255   // bytes of one component
	MaxIntentMode      = 0o777 // setuid, setgid and sticky are not for an intent
	MaxIntentHeaders   = 64

	defaultIntentMode = 0o644
)

// Forms of texts, as the JSON Schema has them.
const (
	intentMethodForm = `^[A-Z]+(-[A-Z]+)*$`
	intentURLForm    = `^https?://([a-z0-9_.-]+|\[[0-9a-f:]+\])(:[1-9][0-9]{0,4})?(/([A-Za-z0-9._~!\x24&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?(\?([A-Za-z0-9._~!\x24&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?$`
	intentHeaderForm = "^[!#\\x24%&'*+.^_`|~0-9a-z-]+$"
	intentValueForm  = `^([!-~]([\t -~]*[!-~])?)?$`
	base64Form       = `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$`

	// intentRefusedForm is the names of headers that an intent cannot have: they are of one connection, or follow
	// from the rest of the intent. Many servers take the method or the URL from those that begin with x-: what a policy was asked
	// about would be another request.
	intentRefusedForm = `^(connection|content-length|expect|host|idempotency-key|keep-alive|proxy-authenticate|proxy-connection|te|trailer|transfer-encoding|upgrade|x[_-](http[_-]method([_-]override)?|method[_-]override|original[_-](method|host|uri|url)|rewrite[_-]url|forwarded[_-](host|prefix)))$`
	// intentSecretForm is the names of headers whose values are secrets, by their names.
	intentSecretForm = `^((.*[^a-z0-9])?(authorization|cookie2?|pass|auth|bearer)|.*(password|passwd|passphrase|token|secret|api[_-]?key|access[_-]?key|private[_-]?key|credentials?))$`
)

var (
	intentMethod, intentURL    = pattern.New(intentMethodForm), pattern.New(intentURLForm)
	intentHeader, intentValue  = pattern.New(intentHeaderForm), pattern.New(intentValueForm)
	intentRefused, headSecrets = pattern.New(intentRefusedForm), pattern.New(intentSecretForm)
	base64Text                 = pattern.New(base64Form)
)

// maxIntentMethod is the most bytes of a method.
const maxIntentMethod = 32

// methodConnect is the one method that is no request of a resource.
const methodConnect = "CONNECT"

// plainMethods are those that change nothing, and need no idempotency_key.
var plainMethods = [...]string{"GET", "HEAD"}

// SecretHeader reports whether a header of this name, in lower case, has a value that no record may have.
func SecretHeader(name string) bool { return headSecrets.MatchString(name) }

// IntentFileWrite is what an intent of the type files.write asks for: that a file has this content.
type IntentFileWrite struct {
	Path    string // below the target directory, in text form; components are neither empty nor . nor ..
	Content []byte
	Mode    uint32 // 0 to 0777
}

// Header is one field of a request.
type Header struct{ Name, Value string }

// IntentRequest is the request that an intent of the type http.request asks for. Its idempotency key is that of
// the intent.
type IntentRequest struct {
	Method  string
	URL     string   // absolute, http or https, without userinfo and fragment
	Headers []Header // sorted by name, each once, names in lower case; a body of JSON has its content-type
	Body    []byte   // nil: none
}

// fields are the keys of a payload, each with its value.
type fields map[string]jsontext.Value

// fieldsOf takes a payload of this type apart. It refuses keys that the type does not have, and null.
func (i *Intent) fieldsOf(kind string, known ...string) (f fields, err error) {
	if i.IntentType != kind {
		return nil, fmt.Errorf("intent_type is %s, expected %s", i.IntentType, kind)
	}
	if err := Unmarshal(i.Payload, &f); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("payload has the key %.100q, which %s does not have", key, kind)
		}
		if string(f[key]) == "null" && key != "json" {
			return nil, fmt.Errorf("payload: key %s is null", key)
		}
	}
	return f, nil
}

// text is the string of a key; false without one.
func (f fields) text(key string) (s string, there bool, err error) {
	v, there := f[key]
	if !there {
		return "", false, nil
	}
	if err := Unmarshal(v, &s); err != nil {
		return "", true, fmt.Errorf("payload: %s is not a string", key)
	}
	return s, true, nil
}

// content is the bytes that text, base64 or json stand for; nil if there are none of them.
func (f fields) content(keys ...string) (content []byte, from string, err error) {
	for _, key := range keys {
		if _, there := f[key]; !there {
			continue
		}
		if from != "" {
			return nil, "", fmt.Errorf("payload has both %s and %s", from, key)
		}
		if from = key; key == "json" {
			content = f[key]
			continue
		}
		s, _, err := f.text(key)
		if err != nil {
			return nil, "", err
		}
		content = []byte(s)
		if key == "base64" {
			if !base64Text.MatchString(s) {
				return nil, "", errors.New("payload: base64 is not the base64 of any bytes, with padding and no line breaks")
			}
			if content, err = base64.StdEncoding.Strict().DecodeString(s); err != nil {
				return nil, "", fmt.Errorf("payload: base64: %w", err)
			}
		}
	}
	return content, from, nil
}

// FileWrite is the intent as a file to write. The error says what is wrong with its payload.
func (i *Intent) FileWrite() (*IntentFileWrite, error) {
	f, err := i.fieldsOf(IntentFilesWrite, "path", "text", "base64", "mode")
	if err != nil {
		return nil, err
	}
	w := &IntentFileWrite{Mode: defaultIntentMode}
	if w.Path, _, err = f.text("path"); err != nil {
		return nil, err
	}
	if err := checkIntentPath(w.Path); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	var from string
	if w.Content, from, err = f.content("text", "base64"); err != nil {
		return nil, err
	}
	if from == "" {
		return nil, errors.New("payload has neither text nor base64")
	}
	if v, there := f["mode"]; there {
		if err := Unmarshal(v, &w.Mode); err != nil || w.Mode > MaxIntentMode {
			return nil, fmt.Errorf("payload: mode is %.100s, expected 0 to %d", v, MaxIntentMode)
		}
	}
	return w, nil
}

// checkIntentPath checks a path below the target directory.
func checkIntentPath(path string) error {
	raw, err := Untext(path)
	switch {
	case err != nil:
		return fmt.Errorf("path is not a text: %w", err)
	case len(raw) > MaxIntentPath:
		return fmt.Errorf("path is not a text of at most %d bytes", MaxIntentPath)
	case strings.IndexByte(path, 0) >= 0:
		return errors.New("path has a NUL, which no name has")
	}
	for part := range strings.SplitSeq(string(raw), "/") {
		switch {
		case part == "", part == ".", part == "..":
			return fmt.Errorf("path is %.100q, expected one below the target directory, in which no component is empty or a dot or two", path)
		case len(part) > MaxIntentComponent:
			return fmt.Errorf("path is not a text whose components have at most %d bytes", MaxIntentComponent)
		}
	}
	return nil
}

// HTTPRequest is the intent as a request. The error says what is wrong with its payload.
func (i *Intent) HTTPRequest() (*IntentRequest, error) {
	f, err := i.fieldsOf(IntentHTTPRequest, "method", "url", "headers", "text", "base64", "json")
	if err != nil {
		return nil, err
	}
	r := new(IntentRequest)
	if r.Method, _, err = f.text("method"); err != nil {
		return nil, err
	}
	if len(r.Method) > maxIntentMethod || !intentMethod.MatchString(r.Method) || r.Method == methodConnect {
		return nil, fmt.Errorf("payload: method is %.100q, expected a method of HTTP in upper case, and not %s", r.Method, methodConnect)
	}
	if i.IdempotencyKey == "" && !slices.Contains(plainMethods[:], r.Method) {
		return nil, fmt.Errorf("%s without idempotency_key: without it nobody could tell a repetition from a second request", r.Method)
	}
	if r.URL, _, err = f.text("url"); err != nil {
		return nil, err
	}
	if err := checkIntentURL(r.URL); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	if r.Headers, err = f.headers(); err != nil {
		return nil, err
	}
	var from string
	if r.Body, from, err = f.content("text", "base64", "json"); err != nil {
		return nil, err
	}
	const contentType = "content-type"
	at, typed := slices.BinarySearchFunc(r.Headers, contentType, func(h Header, name string) int { return strings.Compare(h.Name, name) })
	if from == "json" && !typed {
		r.Headers = slices.Insert(r.Headers, at, Header{contentType, "application/json"})
	}
	return r, nil
}

// headers are those of a request, sorted by name.
func (f fields) headers() (list []Header, err error) {
	v, there := f["headers"]
	if !there {
		return nil, nil
	}
	var named map[string]jsontext.Value
	if err := Unmarshal(v, &named); err != nil {
		return nil, errors.New("payload: headers is not an object")
	}
	if len(named) > MaxIntentHeaders {
		return nil, fmt.Errorf("payload: %d headers, at most %d", len(named), MaxIntentHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		var value string
		isText := named[name].Kind() == '"' && Unmarshal(named[name], &value) == nil
		switch {
		case !intentHeader.MatchString(name):
			return nil, fmt.Errorf("payload: header %.100q, expected a name in lower case", name)
		case intentRefused.MatchString(name):
			return nil, fmt.Errorf("payload: header %s, which is for who sends the request", name)
		case SecretHeader(name):
			return nil, because(WhySecret, fmt.Errorf("payload: secret header %.100s, whose value no record may have", name))
		case !isText || !intentValue.MatchString(value):
			return nil, fmt.Errorf("payload: the value of header %.100s is not printable ASCII without blanks at its ends", name)
		}
		list = append(list, Header{name, value})
	}
	return list, nil
}

// checkIntentURL checks an absolute URL that has one spelling.
func checkIntentURL(s string) error {
	if !intentURL.MatchString(s) {
		return fmt.Errorf("url is %.100q, expected http:// or https://, a host in lower case, and neither userinfo nor fragment", s)
	}
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("url is not a text of a URL: %.100q", s)
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("url is not a text of a URL: it has the port %s", port)
		}
	}
	if a, err := netip.ParseAddr(u.Hostname()); strings.HasPrefix(u.Host, "[") && (err != nil || !a.Is6() || a.Is4In6() || a.String() != u.Hostname()) {
		return fmt.Errorf("url is not a text of a URL: %.100q is no address of IPv6 in its short form", u.Hostname())
	}
	// Servers resolve these, so that the path would be another than the one that a policy saw.
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == "." || part == ".." {
			return fmt.Errorf("url is not a text of a URL whose path is plain: it has the component %s", part)
		}
	}
	return nil
}
