package exchange

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// The HTTP Archive format 1.2 (http://www.softwareishard.com/blog/har-12-spec/).

type har struct {
	Log harLog `json:"log"`
}

type harLog struct {
	Version string     `json:"version"`
	Creator harCreator `json:"creator"`
	Entries []harEntry `json:"entries"`
	Comment string     `json:"comment"`
}

type harCreator struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type harEntry struct {
	Started  string      `json:"startedDateTime"`
	Time     int         `json:"time"`
	Request  harRequest  `json:"request"`
	Response harResponse `json:"response"`
	Cache    struct{}    `json:"cache"`
	Timings  harTimings  `json:"timings"`
	Comment  string      `json:"comment"`
}

type harTimings struct {
	Send    int `json:"send"`
	Wait    int `json:"wait"`
	Receive int `json:"receive"`
}

type harPair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type harRequest struct {
	Method      string    `json:"method"`
	URL         string    `json:"url"`
	Version     string    `json:"httpVersion"`
	Cookies     []harPair `json:"cookies"`
	Headers     []harPair `json:"headers"`
	Query       []harPair `json:"queryString"`
	Post        *harPost  `json:"postData,omitempty"`
	HeadersSize int       `json:"headersSize"`
	BodySize    uint64    `json:"bodySize"`
}

type harPost struct {
	Type    string `json:"mimeType"`
	Text    string `json:"text"`
	Comment string `json:"comment,omitempty"`
}

type harResponse struct {
	Status      int        `json:"status"`
	StatusText  string     `json:"statusText"`
	Version     string     `json:"httpVersion"`
	Cookies     []harPair  `json:"cookies"`
	Headers     []harPair  `json:"headers"`
	Content     harContent `json:"content"`
	Redirect    string     `json:"redirectURL"`
	HeadersSize int        `json:"headersSize"`
	BodySize    uint64     `json:"bodySize"`
}

type harContent struct {
	Size     uint64 `json:"size"`
	Type     string `json:"mimeType"`
	Text     string `json:"text,omitempty"`
	Encoding string `json:"encoding,omitempty"`
}

// unrecorded stands for what the format wants and a record does not have.
const (
	unrecordedTime    = "1970-01-01T00:00:00.000Z"
	unrecordedVersion = "unknown"
)

// HAR writes the HTTP exchanges of a recording as one HAR document. Bodies that are no text are in base64.
func (r *Recording) HAR(w io.Writer) error {
	h := har{harLog{Version: "1.2", Creator: harCreator{schemas.StageNet, tool.Version()}, Entries: []harEntry{},
		Comment: "times, sizes of headers and versions of HTTP are not recorded: they are 1970, -1 and unknown"}}
	for _, e := range r.Exchanges {
		if e.Method == "" {
			continue
		}
		x, err := r.harEntry(e)
		if err != nil {
			return err
		}
		h.Log.Entries = append(h.Log.Entries, x)
	}
	b, err := schemas.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func (r *Recording) harEntry(e *schemas.NetExchange) (x harEntry, err error) {
	x = harEntry{Started: unrecordedTime, Comment: e.Decision}
	if e.Failure != "" {
		x.Comment += ", " + e.Failure
	}
	x.Request = harRequest{Method: e.Method, URL: URL(e), Version: unrecordedVersion, Cookies: []harPair{}, Headers: pairs(e.Request.Headers), Query: query(e.Query), HeadersSize: -1, BodySize: e.Request.Bytes}
	if e.Request.Bytes > 0 {
		text, encoding, err := r.text(&e.Request)
		if err != nil {
			return x, err
		}
		x.Request.Post = &harPost{Type: header(e.Request.Headers, "Content-Type"), Text: text, Comment: encoding}
	}
	x.Response = harResponse{Status: int(e.Status), StatusText: http.StatusText(int(e.Status)), Version: unrecordedVersion, Cookies: []harPair{}, Headers: []harPair{}, HeadersSize: -1}
	if m := e.Response; m != nil {
		x.Response.Headers, x.Response.BodySize, x.Response.Redirect = pairs(m.Headers), m.Bytes, header(m.Headers, "Location")
		x.Response.Content = harContent{Size: m.Bytes, Type: header(m.Headers, "Content-Type")}
		if x.Response.Content.Text, x.Response.Content.Encoding, err = r.text(m); err != nil {
			return x, err
		}
	}
	return x, nil
}

// text is a body as a string of JSON, and the encoding that it needed.
func (r *Recording) text(m *schemas.NetMessage) (text, encoding string, err error) {
	f, err := r.Body(m)
	if err != nil {
		return "", "", tool.CannotRead("a body of the record", err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return "", "", tool.CannotRead("a body of the record", err)
	}
	if utf8.Valid(b) {
		return string(b), "", nil
	}
	return base64.StdEncoding.EncodeToString(b), "base64", nil
}

func pairs(list []schemas.NetHeader) []harPair {
	out := make([]harPair, 0, len(list))
	for _, h := range list {
		out = append(out, harPair(h))
	}
	return out
}

func header(list []schemas.NetHeader, name string) string {
	for _, h := range list {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

func query(q string) []harPair {
	out := []harPair{}
	for part := range strings.SplitSeq(q, "&") {
		name, value, _ := strings.Cut(part, "=")
		if part != "" {
			out = append(out, harPair{unescaped(name), unescaped(value)})
		}
	}
	return out
}

// unescaped is a part of a query as the server reads it, or as it is if it cannot be read.
func unescaped(s string) string {
	if t, err := url.QueryUnescape(s); err == nil && utf8.ValidString(t) {
		return t
	}
	return s
}
