package proc

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	testkit.Must(t, err)
	return b
}

func sample() *Request {
	return &Request{Argv: [][]byte{[]byte("tool"), []byte("arg1"), []byte("arg2")}, Env: []Var{{[]byte("KEY"), []byte("VAL")}}, Cwd: []byte("cwd"), Stdin: []byte("stdin")}
}

// TestEncoding compares with bytes that were written by hand from the tables of the specification.
func TestEncoding(t *testing.T) {
	for want, have := range map[string][]byte{
		"0101000000020000000300000004000000":                   (&Caps{1, 2, 3, 4}).Append(nil),
		"01000100000004000000746f6f6c000000000000000000000000": (&Request{Argv: [][]byte{[]byte("tool")}}).Append(nil),
		"01000300000004000000746f6f6c0400000061726731040000006172673201000000030000004b45590300000056414c0300000063776405000000737464696e": sample().Append(nil),
		"000500000000000000": (&Result{Code: OutputLimit}).Append(nil, WideErr),
		"0001000000":         (&Result{Code: PolicyDenied}).Append(nil, NarrowErr),
		"01012a0000000000000003000000616263020000007879": (&Result{Response: Response{ExitCode: 42, Stdout: []byte("abc"), Stderr: []byte("xy")}}).Append(nil, WideErr),
	} {
		if got := hex.EncodeToString(have); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
}

// TestEveryPrefixIsRefused: what ends early, or goes on, is no request, no limits, no result, no frame and no list; only the first can become one.
func TestEveryPrefixIsRefused(t *testing.T) {
	request, caps := sample().Append(nil), (&Caps{1, 2, 3, 4}).Append(nil)
	ok := (&Result{Response: Response{Stdout: []byte("abc")}}).Append(nil, WideErr)
	for name, x := range map[string]struct {
		whole []byte
		parse func([]byte) error
	}{
		"request": {request, func(b []byte) error { _, err := ParseRequest(b); return err }},
		"limits":  {caps, func(b []byte) error { _, err := ParseCaps(b); return err }},
		"result":  {ok, func(b []byte) error { _, err := ParseResult(b); return err }},
		"frame":   {AppendFrame(nil, request, caps), func(b []byte) error { _, _, err := ParseFrame(b); return err }},
		"items":   {AppendItems(nil, [][]byte{[]byte("a"), nil, []byte("bc")}), func(b []byte) error { _, err := ParseItems(b); return err }},
	} {
		testkit.Must(t, x.parse(x.whole))
		for n := range len(x.whole) {
			if err := x.parse(x.whole[:n]); err == nil || !IsCut(err) {
				t.Errorf("%s: the first %d of %d bytes: %v", name, n, len(x.whole), err)
			}
		}
		if err := x.parse(append(slices.Clone(x.whole), 0)); err == nil || IsCut(err) {
			t.Errorf("%s: a byte after its end: %v", name, err)
		}
	}
}

// TestRefused: what a request must not have.
func TestRefused(t *testing.T) {
	for name, change := range map[string]func(q *Request){
		"no argument":    func(q *Request) { q.Argv = nil },
		"no path":        func(q *Request) { q.Argv[0] = nil },
		"many arguments": func(q *Request) { q.Argv = slices.Repeat(q.Argv[:1], MaxArgs+1) },
		"0 in argument":  func(q *Request) { q.Argv[1] = []byte("a\x00b") },
		"many variables": func(q *Request) { q.Env = slices.Repeat(q.Env, MaxEnv+1) },
		"no name":        func(q *Request) { q.Env[0].Key = nil },
		"= in name":      func(q *Request) { q.Env[0].Key = []byte("A=B") },
		"0 in name":      func(q *Request) { q.Env[0].Key = []byte("A\x00") },
		"0 in value":     func(q *Request) { q.Env[0].Value = []byte("\x00") },
		"0 in directory": func(q *Request) { q.Cwd = []byte("\x00") },
	} {
		q := sample()
		change(q)
		if _, err := ParseRequest(q.Append(nil)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for i, to := range []byte{2, 1} { // version, flags
		b := sample().Append(nil)
		b[i] = to
		if _, err := ParseRequest(b); err == nil {
			t.Errorf("byte %d is %d: taken", i, to)
		}
	}
	most := sample()
	most.Argv, most.Env = slices.Repeat(most.Argv[:1], MaxArgs), slices.Repeat(most.Env, MaxEnv)
	if _, err := ParseRequest(most.Append(nil)); err != nil {
		t.Error(err)
	}
}

// TestVectors reads the byte vectors of the corpora.
func TestVectors(t *testing.T) {
	var v struct {
		Encode []struct {
			Name, Hex string
			Caps      *struct {
				MaxStdout uint32 `json:"max_stdout_bytes"`
				MaxStderr uint32 `json:"max_stderr_bytes"`
				Timeout   uint32 `json:"timeout_ms"`
				MaxTotal  uint32 `json:"max_total_bytes"`
			}
			Req *struct {
				Argv       []string
				Env        [][2]string
				Cwd, Stdin string
			}
		}
		Decode []struct {
			Name, Hex      string
			Tag            byte
			ErrCode        Code   `json:"err_code"`
			ExitCode       uint32 `json:"exit_code"`
			Flags          uint32
			Stdout, Stderr string
		}
		InvalidRequest []struct{ Name, Hex string } `json:"invalid_request"`
		InvalidCaps    []struct{ Name, Hex string } `json:"invalid_caps"`
	}
	testkit.Must(t, json.Unmarshal(testkit.Read(t, testkit.Corpora(t, "x07", "vectors", "process-abi-v1.json")), &v))
	for _, x := range v.Encode {
		var have []byte
		if x.Caps != nil {
			have = (&Caps{x.Caps.MaxStdout, x.Caps.MaxStderr, x.Caps.Timeout, x.Caps.MaxTotal}).Append(nil)
		} else {
			q := Request{Cwd: []byte(x.Req.Cwd), Stdin: []byte(x.Req.Stdin)}
			for _, a := range x.Req.Argv {
				q.Argv = append(q.Argv, []byte(a))
			}
			for _, e := range x.Req.Env {
				q.Env = append(q.Env, Var{[]byte(e[0]), []byte(e[1])})
			}
			have = q.Append(nil)
		}
		if got := hex.EncodeToString(have); got != x.Hex {
			t.Errorf("%s: %s, expected %s", x.Name, got, x.Hex)
		}
	}
	for _, x := range v.Decode {
		s, err := ParseResult(unhex(t, x.Hex))
		testkit.Must(t, err)
		if s.Code != x.ErrCode || s.ExitCode != x.ExitCode || s.Flags+s.RespFlags != x.Flags || string(s.Stdout) != x.Stdout || string(s.Stderr) != x.Stderr {
			t.Errorf("%s: %+v", x.Name, s)
		}
	}
	for _, x := range v.InvalidRequest {
		if _, err := ParseRequest(unhex(t, x.Hex)); err == nil {
			t.Errorf("%s: taken", x.Name)
		}
	}
	for _, x := range v.InvalidCaps {
		if _, err := ParseCaps(unhex(t, x.Hex)); err == nil {
			t.Errorf("%s: taken", x.Name)
		}
	}
	var seed struct {
		Cases []struct {
			Name   string
			Input  string `json:"input_b64"`
			Wide   string `json:"expected_b64_wide"`
			Narrow string `json:"expected_b64_narrow"`
		}
	}
	testkit.Must(t, json.Unmarshal(testkit.Read(t, testkit.Corpora(t, "x07", "vectors", "seed-cases-repointed.json")), &seed))
	for _, x := range seed.Cases {
		frame, err := base64.StdEncoding.DecodeString(x.Input)
		testkit.Must(t, err)
		request, caps, err := ParseFrame(frame)
		testkit.Must(t, err)
		q, err := ParseRequest(request)
		testkit.Must(t, err)
		c, err := ParseCaps(caps)
		testkit.Must(t, err)
		if again := AppendFrame(nil, q.Append(nil), c.Append(nil)); !bytes.Equal(again, frame) {
			t.Errorf("%s: %x is %x again", x.Name, frame, again)
		}
		for width, text := range map[int]string{WideErr: x.Wide, NarrowErr: x.Narrow} {
			if text == "" {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(text)
			testkit.Must(t, err)
			s, err := ParseResult(b)
			testkit.Must(t, err)
			if again := s.Append(nil, width); !bytes.Equal(again, b) {
				t.Errorf("%s: %x is %x again", x.Name, b, again)
			}
		}
	}
}

// FuzzWire: what is taken is written again as the same bytes.
func FuzzWire(f *testing.F) {
	f.Add(sample().Append(nil))
	f.Add((&Caps{1, 2, 3, 4}).Append(nil))
	f.Add((&Result{Code: Timeout}).Append(nil, WideErr))
	f.Add((&Result{Response: Response{Stdout: []byte("abc")}}).Append(nil, WideErr))
	f.Add(AppendFrame(nil, sample().Append(nil), (&Caps{}).Append(nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := ParseRequest(b); err == nil && !bytes.Equal(q.Append(nil), b) {
			t.Errorf("request %x", b)
		}
		if c, err := ParseCaps(b); err == nil && !bytes.Equal(c.Append(nil), b) {
			t.Errorf("limits %x", b)
		}
		if s, err := ParseResult(b); err == nil && !bytes.Equal(s.Append(nil, len(b)), b) {
			t.Errorf("result %x", b)
		}
		if q, c, err := ParseFrame(b); err == nil && !bytes.Equal(AppendFrame(nil, q, c), b) {
			t.Errorf("frame %x", b)
		}
	})
}
