package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Arguments are what a program was started with, as far as the run was asked to record it.
type Arguments struct {
	Name    string   `json:"name,omitempty"`    // of the program: the last part of the first argument
	Count   uint64   `json:"count"`             // arguments that were read
	Bytes   uint64   `json:"bytes"`             // of all arguments, each with its 0 byte
	Unread  uint64   `json:"unread,omitzero"`   // bytes of them that were not read
	Argv    []string `json:"argv,omitempty"`    // the arguments, with what a rule took out
	Digests []string `json:"digests,omitempty"` // HMAC-SHA256 of each, of the first ones
}

// Ways to record arguments: the values of --argv.
const (
	ArgvNone = "none"
	ArgvHash = "hash" // the program's name, and with a key digests
	ArgvFull = "full"
)

// ArgvModes are all ways.
var ArgvModes = [...]string{ArgvNone, ArgvHash, ArgvFull}

// Bounds of arguments.
const (
	MaxArgumentBytes = 8192 // that are read of one exec
	MaxDigests       = 64   // of one exec
	MaxProgramName   = 255  // bytes of its text
)

// NoKey is the key of digests in the facts and notes of a run without one.
const NoKey = "none"

// Redaction is one rule by which secrets are taken out of arguments and of the command of run_started.
type Redaction struct{ ID, What string }

// Ids of redactions.
const (
	RedactOption   = "option"
	RedactVariable = "variable"
	RedactHeader   = "header"
	RedactUserinfo = "userinfo"
	RedactToken    = "token"
	RedactKey      = "key"
	RedactMarker   = "marker"
)

// Redactions are all rules, in the order in which they are tried.
var Redactions = [...]Redaction{
	{RedactMarker, "text that looks like a mark of these rules, from there to the end of the argument"},
	{RedactKey, "`-----BEGIN`, to the end of the argument"},
	{RedactHeader, "after `Authorization:`, `Proxy-Authorization:`, `Cookie:`, `Set-Cookie:`, `X-Api-Key:`, `X-Auth-Token:` or `Private-Token:`, in any case: to the end of the argument"},
	{RedactUserinfo, "what is between `://` and `@` in a URL"},
	{RedactOption, "the value of an option whose name ends with password, passwd, passphrase, token, secret, apikey, api-key, access-key, secret-key, private-key, credential or credentials, or is pass, auth or bearer: after `=`, or the next argument or word"},
	{RedactVariable, "the value after `NAME=`, also in the query of a URL, with a name that ends like that"},
	{RedactToken, "a word that begins with `ghp_`, `gho_`, `ghu_`, `ghs_`, `ghr_`, `github_pat_`, `glpat-`, `sk-`, `sk_live_`, `rk_live_`, `xoxa-`, `xoxb-`, `xoxp-`, `xoxr-`, `xoxs-`, `AKIA`, `ASIA`, `AIza`, `eyJ`, `npm_`, `pypi-`, `hf_` or `SG.` and has 12 more letters, digits, `_`, `-` or `.`"},
}

// RedactionMark begins a mark; an id, perhaps a digest, and RedactionEnd follow.
const (
	RedactionMark   = "[redacted "
	RedactionEnd    = "]"
	RedactionDigest = " hmac-sha256:"
)

// Check checks what the object says on its own.
func (a *Arguments) Check() error {
	switch {
	case a.Unread > a.Bytes || a.Count > a.Bytes-a.Unread:
		return fmt.Errorf("%d arguments, and %d bytes that were not read, of %d bytes", a.Count, a.Unread, a.Bytes)
	case a.Bytes-a.Unread > MaxArgumentBytes:
		return fmt.Errorf("%d bytes were read, at most %d", a.Bytes-a.Unread, MaxArgumentBytes)
	case len(a.Argv) > 0 && uint64(len(a.Argv)) != a.Count:
		return fmt.Errorf("argv has %d arguments, count says %d", len(a.Argv), a.Count)
	case len(a.Digests) > 0 && uint64(len(a.Digests)) != min(a.Count, MaxDigests):
		return fmt.Errorf("%d digests of %d arguments", len(a.Digests), a.Count)
	case len(a.Argv) > 0 && len(a.Digests) > 0:
		return errors.New("argv and digests")
	case len(a.Name) > MaxProgramName || a.Count == 0 && a.Name != "":
		return fmt.Errorf("name is %.100q of %d arguments, expected at most %d bytes", a.Name, a.Count, MaxProgramName)
	}
	for _, d := range a.Digests {
		if !isDigest(d) {
			return fmt.Errorf("digest %.100q, expected 64 hex digits", d)
		}
	}
	return nil
}

// ParseArguments parses the object, which must be in canonical form.
func ParseArguments(b []byte) (*Arguments, error) {
	a := new(Arguments)
	if err := first(decode(b, a), a.Check()); err != nil {
		return nil, err
	}
	again, err := Marshal(a)
	if err == nil && !bytes.Equal(again, b) {
		err = errors.New("not in canonical form")
	}
	return a, err
}

// arguments reads the object.
func (s *scanner) arguments() (*Arguments, bool) {
	start, depth, quoted := s.i, 0, false
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case quoted && c == '\\':
			s.i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
		if depth == 0 {
			break
		}
	}
	end := min(s.i+1, len(s.b))
	a, err := ParseArguments(s.b[start:end])
	if err != nil {
		s.i = start
		return nil, s.fail("arguments: %v", err)
	}
	s.i = end
	return a, true
}

// RedactionMarks are the marks of redactions in a text: how many have a digest and how many have none.
type RedactionMarks struct{ Keyed, Plain uint64 }

// Add adds the marks of a text. Its error says which one no rule makes.
func (m *RedactionMarks) Add(text string) error {
	for {
		_, rest, there := strings.Cut(text, RedactionMark)
		if !there {
			return nil
		}
		mark, after, closed := strings.Cut(rest, RedactionEnd)
		id, digest, keyed := strings.Cut(mark, RedactionDigest)
		known := slices.ContainsFunc(Redactions[:], func(r Redaction) bool { return r.ID == id })
		if !closed || !known || keyed && !isDigest(digest) {
			return fmt.Errorf("%s%.100q is the mark of no rule", RedactionMark, mark)
		}
		if keyed {
			m.Keyed++
		} else {
			m.Plain++
		}
		text = after
	}
}

// isDigest reports whether text is 32 bytes as hex digits.
func isDigest(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// Texts are all texts of the object.
func (a *Arguments) Texts() []string { return append([]string{a.Name}, a.Argv...) }
