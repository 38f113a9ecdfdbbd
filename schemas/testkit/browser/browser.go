// Package browser lets a test use a headless Chromium as a person does.
package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Browser is a headless Chromium with one page, told what to do through its DevTools protocol
// over two pipes.
type Browser struct {
	t       *testing.T
	to      io.Writer
	answers chan message
	session string
	last    int

	Requested  []string // addresses that were asked for
	Complaints []string // errors, and violations of a page's policy
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// Start starts the browser, with an empty page. The test is skipped, loudly, where there is none. What says what needs it.
func Start(t *testing.T, what string) *Browser {
	t.Helper()
	testkit.Programs(t, what, "chromium")
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
	b := &Browser{t: t, to: to, answers: make(chan message, 1024)}
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
	b.Ask(&made, "Target.createTarget", map[string]any{"url": "about:blank"})
	b.Ask(&made, "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true})
	b.session = made.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.Ask(nil, domain+".enable", nil)
	}
	return b
}

// Open opens an address, and waits until an expression of the page is true. It returns how long that took.
func (b *Browser) Open(address, ready string) time.Duration {
	b.t.Helper()
	begin := time.Now()
	b.Ask(nil, "Page.navigate", map[string]any{"url": address})
	b.Until(`document.readyState === "complete" && location.protocol !== "about:" && (` + ready + `)`)
	return time.Since(begin)
}

func (b *Browser) listen(from io.Reader) {
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

// Ask sends a command and waits for its answer. What happens meanwhile is noted.
func (b *Browser) Ask(result any, method string, params any) {
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

// note keeps what happens.
func (b *Browser) note(m message) {
	switch m.Method {
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		json.Unmarshal(m.Params, &p)
		b.Requested = append(b.Requested, p.Request.URL)
	case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening":
		b.Complaints = append(b.Complaints, testkit.Clip(string(m.Params)))
	}
}

// Value is what an expression of JavaScript gives, as text.
func (b *Browser) Value(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.Ask(&r, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true})
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return fmt.Sprint(r.Result.Value)
}

// Expect compares what an expression gives.
func (b *Browser) Expect(expression, want string) {
	b.t.Helper()
	if got := b.Value(expression); got != want {
		b.t.Errorf("%s is %q, expected %q", expression, got, want)
	}
}

// Until waits until an expression is true.
func (b *Browser) Until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); b.Value("Boolean("+expression+")") != "true"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s did not become true", expression)
		}
	}
}

// Key presses a key and lets it go.
func (b *Browser) Key(key, text string, code int) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": key, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			p["text"] = text
		}
		b.Ask(nil, "Input.dispatchKeyEvent", p)
	}
}

// Shot writes what the page shows to a PNG file.
func (b *Browser) Shot(file string) {
	b.t.Helper()
	var r struct{ Data []byte }
	b.Ask(&r, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true})
	testkit.Write(b.t, file, r.Data)
}

// Choose gives a file to the first input that a selector finds, as a person does in a dialogue.
func (b *Browser) Choose(selector, file string) {
	b.t.Helper()
	var page struct{ Root struct{ NodeID int } }
	b.Ask(&page, "DOM.getDocument", nil)
	var found struct{ NodeID int }
	b.Ask(&found, "DOM.querySelector", map[string]any{"nodeId": page.Root.NodeID, "selector": selector})
	b.Ask(nil, "DOM.setFileInputFiles", map[string]any{"nodeId": found.NodeID, "files": []string{file}})
}

// Click clicks the first element that a selector finds, and that can be clicked.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	quoted, err := json.Marshal(selector)
	testkit.Must(b.t, err)
	b.Until("document.querySelector(" + string(quoted) + ")?.disabled === false")
	b.Value("document.querySelector(" + string(quoted) + ").click()")
}

// Size sets the size of the window, in CSS pixels.
func (b *Browser) Size(width, height int) {
	b.t.Helper()
	b.Ask(nil, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}
