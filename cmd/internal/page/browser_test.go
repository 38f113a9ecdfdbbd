package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// browser is a headless Chromium with one page, told what to do through its DevTools protocol
// over two pipes.
type browser struct {
	t         *testing.T
	to        io.Writer
	answers   chan message
	session   string
	last      int
	requested []string // addresses that were asked for
	complaint []string // errors, and violations of the page's policy
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// browse starts the browser and opens a page. It returns how long the page took to be ready.
func browse(t *testing.T, page []byte) (*browser, time.Duration) {
	t.Helper()
	testkit.Programs(t, "the page of runner-show in a browser", "chromium")
	file := filepath.Join(t.TempDir(), "page.html")
	testkit.Write(t, file, page)
	in, to, err := os.Pipe()
	testkit.Must(t, err)
	from, out, err := os.Pipe()
	testkit.Must(t, err)
	profile, err := os.MkdirTemp("", "runner-browser")
	testkit.Must(t, err)
	c := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--window-size=1280,900", "--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	c.ExtraFiles = []*os.File{in, out} // descriptors 3 and 4
	testkit.Must(t, c.Start())
	in.Close()
	out.Close()
	b := &browser{t: t, to: to, answers: make(chan message, 1024)}
	t.Cleanup(func() {
		to.Close() // it ends with its pipe
		ended := time.AfterFunc(10*time.Second, func() { c.Process.Kill() })
		c.Wait()
		ended.Stop()
		from.Close()
		os.RemoveAll(profile)
	})
	go b.listen(from)
	var made struct{ TargetID, SessionID string }
	b.ask(&made, "Target.createTarget", map[string]any{"url": "about:blank"})
	b.ask(&made, "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true})
	b.session = made.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.ask(nil, domain+".enable", nil)
	}
	begin := time.Now()
	b.ask(nil, "Page.navigate", map[string]any{"url": "file://" + file})
	b.until(`document.readyState === "complete" && location.protocol === "file:" && document.querySelector("#operations-table [role=status]").textContent !== ""`)
	return b, time.Since(begin)
}

func (b *browser) listen(from io.Reader) {
	defer close(b.answers)
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &m) == nil {
			b.answers <- m
		}
	}
}

// ask sends a command and waits for its answer. What happens meanwhile is noted.
func (b *browser) ask(result any, method string, params any) {
	b.t.Helper()
	b.last++
	command := map[string]any{"id": b.last, "method": method}
	if params != nil {
		command["params"] = params
	}
	if b.session != "" {
		command["sessionId"] = b.session
	}
	text, err := json.Marshal(command)
	testkit.Must(b.t, err)
	_, err = b.to.Write(append(text, 0))
	testkit.Must(b.t, err)
	limit := time.After(2 * time.Minute)
	for {
		select {
		case <-limit:
			b.t.Fatalf("%s: no answer", method)
		case m, open := <-b.answers:
			switch {
			case !open:
				b.t.Fatalf("%s: the browser ended", method)
			case m.ID == 0:
				b.note(m)
			case m.ID == b.last && m.Error != nil:
				b.t.Fatalf("%s: %s", method, m.Error)
			case m.ID == b.last:
				if result != nil {
					testkit.Must(b.t, json.Unmarshal(m.Result, result))
				}
				return
			}
		}
	}
}

func (b *browser) note(m message) {
	switch m.Method {
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		json.Unmarshal(m.Params, &p)
		b.requested = append(b.requested, p.Request.URL)
	case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening":
		b.complaint = append(b.complaint, testkit.Clip(string(m.Params)))
	}
}

// value is what an expression of JavaScript gives, as text.
func (b *browser) value(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.ask(&r, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true})
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return fmt.Sprint(r.Result.Value)
}

func (b *browser) expect(expression, want string) {
	b.t.Helper()
	if got := b.value(expression); got != want {
		b.t.Errorf("%s is %q, expected %q", expression, got, want)
	}
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); b.value("Boolean("+expression+")") != "true"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s did not become true", expression)
		}
	}
}

// key presses a key and lets it go.
func (b *browser) key(key, text string, code int) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": key, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			p["text"] = text
		}
		b.ask(nil, "Input.dispatchKeyEvent", p)
	}
}

// quiet: the browser asked for nothing but the page, and had nothing to complain about.
func (b *browser) quiet() {
	b.t.Helper()
	if len(b.requested) != 1 || !strings.HasPrefix(b.requested[0], "file://") {
		b.t.Errorf("the page asked for %q", b.requested)
	}
	if len(b.complaint) > 0 {
		b.t.Errorf("the browser complains: %q", b.complaint)
	}
}
