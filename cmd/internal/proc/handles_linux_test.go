package proc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// spawned starts a process of a pool.
func spawned(t *testing.T, p *Pool, script string, c Caps, piped bool) Handle {
	t.Helper()
	h, o := p.Spawn(shell(script).Append(nil), c.Append(nil), piped)
	if o.Code != 0 {
		t.Fatalf("%s: %v: %s", script, o.Code, o.Why)
	}
	return h
}

// all reads an output until it ends.
func all(t *testing.T, p *Pool, h Handle, which int) string {
	t.Helper()
	var s strings.Builder
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b, ends, err := p.Read(h, which, 3)
		testkit.Must(t, err)
		if s.Write(b); ends {
			return s.String()
		}
	}
	t.Fatalf("it does not end: %q", s.String())
	return ""
}

// TestPiped: what is written arrives in its order, and what a process writes can be taken in parts.
func TestPiped(t *testing.T) {
	p := &Pool{Runner: newRunner(t, nil)}
	defer p.Close()
	h := spawned(t, p, "cat; echo end >&2; exit 5", enough, true)
	var turns []func([]byte) bool
	for range 3 {
		turn, err := p.Queue(h)
		testkit.Must(t, err)
		turns = append(turns, turn)
	}
	done := make(chan bool, 3)
	go func() { done <- turns[2](nil) }()
	go func() { done <- turns[1]([]byte("two")) }()
	done <- turns[0]([]byte("one "))
	if out, errs := all(t, p, h, 0), all(t, p, h, 1); out != "one two" || errs != "end\n" {
		t.Errorf("%q, %q", out, errs)
	}
	for range 3 {
		if !<-done {
			t.Error("something was not written")
		}
	}
	if exit, code, ended, err := p.Wait(h, true); exit != 5 || code != 0 || !ended || err != nil {
		t.Error(exit, code, ended, err)
	}
	if _, err := p.Join(h); !errors.Is(err, ErrMode) {
		t.Errorf("a piped process has a result: %v", err)
	}
}

// TestPipedLimits: limits are of what was not taken.
func TestPipedLimits(t *testing.T) {
	p := &Pool{Runner: newRunner(t, nil)}
	defer p.Close()
	h := spawned(t, p, "printf aaa; read x; printf bbb", Caps{3, 0, 20000, 0}, true)
	for got := ""; got != "aaa"; time.Sleep(time.Millisecond) {
		b, _, err := p.Read(h, 0, 9)
		testkit.Must(t, err)
		got += string(b)
	}
	turn, err := p.Queue(h)
	testkit.Must(t, err)
	turn([]byte("\n"))
	if got := all(t, p, h, 0); got != "bbb" {
		t.Errorf("%q", got)
	}
	for script, want := range map[string]Code{"printf aaaa; sleep 20": OutputLimit, "printf a >&2; sleep 20": OutputLimit, "sleep 20": Timeout} {
		c := Caps{3, 0, 20000, 0}
		if want == Timeout {
			c.TimeoutMS = 50
		}
		if _, code, _, _ := p.Wait(spawned(t, p, script, c, true), true); code != want {
			t.Errorf("%s: %v, expected %v", script, code, want)
		}
	}
}

// TestHandles: a handle that was dropped names nothing, also when its place is used again; a process ends with its handle.
func TestHandles(t *testing.T) {
	p := &Pool{Runner: newRunner(t, nil)}
	first := spawned(t, p, "sleep 300", Caps{}, false)
	if _, _, ended, err := p.Wait(first, false); ended || err != nil {
		t.Error(ended, err)
	}
	if ok, err := p.Drop(first); !ok || err != nil {
		t.Error(ok, err)
	}
	again := spawned(t, p, "exit 3", enough, false)
	if again == first || again&0xffff != first&0xffff {
		t.Errorf("%x, then %x", first, again)
	}
	for _, h := range []Handle{0, first, again + 1, again + 1<<16, 0xffff} {
		if _, err := p.Join(h); !errors.Is(err, ErrHandle) {
			t.Errorf("%x: %v", h, err)
		}
	}
	if o, err := p.Join(again); err != nil || o.ExitCode != 3 {
		t.Error(o, err)
	}
	if ok, err := p.Kill(again, unix.SIGTERM); ok || err != nil {
		t.Errorf("a process that has ended got a signal: %v %v", ok, err)
	}
	ends := spawned(t, p, "trap 'exit 9' TERM; while :; do sleep 0.01; done", enough, true) // the shell may tell of its sleep
	for {
		if _, err := p.Kill(ends, unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit, _, ended, _ := p.Wait(ends, false); ended {
			if exit != 9 && exit != 143 { // it may not have said yet what to do
				t.Errorf("exit %d", exit)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	last := spawned(t, p, "sleep 300", Caps{}, false)
	exit := make(chan uint32)
	k, err := p.find(last)
	testkit.Must(t, err)
	go func() { <-k.settled; exit <- k.x.ExitCode() }()
	p.Close()
	if n := <-exit; n != 137 {
		t.Errorf("exit %d", n)
	}
	if _, _, _, err := p.Wait(last, false); !errors.Is(err, ErrHandle) {
		t.Errorf("a handle after the end: %v", err)
	}
	if left := children(); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
}

// TestPoolLimits: how many processes there may be at one time, and in all.
func TestPoolLimits(t *testing.T) {
	q, err := ParsePolicy("p.json", []byte(runOSFile(`"/bin/true"`, `"/bin/sleep"`, `["-[a]*", "a.*b", "\\.x*"]`, `[]`)))
	testkit.Must(t, err)
	p := &Pool{Runner: newRunner(t, q)} // 2 at one time, 3 in all
	defer p.Close()
	spawn := func() (Handle, Code) {
		h, o := p.Spawn(request("/bin/sleep", "300").Append(nil), (&Caps{10, 10, 900, 0}).Append(nil), false)
		return h, o.Code
	}
	one, code := spawn()
	_, second := spawn()
	full, third := spawn()
	if code != 0 || second != 0 || third != PolicyDenied || full != noHandle(PolicyDenied) || full&0xffff != 0 {
		t.Error(code, second, third, full)
	}
	if ok, err := p.Drop(one); !ok || err != nil {
		t.Error(ok, err)
	}
	if _, code := spawn(); code != PolicyDenied {
		t.Errorf("a fourth one: %v", code)
	}
	// A run waits for room, and is counted too.
	q, err = ParsePolicy("p.json", []byte(runOSFile(`"/bin/true"`, `"/bin/sleep"`, `["-[a]*", "a.*b", "\\.x*"]`, `[]`, `"max_live": 2`, `"max_live": 1`)))
	testkit.Must(t, err)
	p = &Pool{Runner: newRunner(t, q)}
	defer p.Close()
	h, code := spawn()
	if code != 0 {
		t.Fatal(code)
	}
	done := make(chan Code)
	go func() {
		done <- p.Run(request("/bin/sleep", "0").Append(nil), (&Caps{10, 10, 900, 0}).Append(nil)).Code
	}()
	select {
	case code := <-done:
		t.Errorf("it did not wait: %v", code)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := p.Drop(h); err != nil {
		t.Error(err)
	}
	if code := <-done; code != 0 {
		t.Error(code)
	}
	for _, want := range []Code{0, PolicyDenied} {
		if code := p.Run(request("/bin/sleep", "0").Append(nil), (&Caps{10, 10, 900, 0}).Append(nil)).Code; code != want {
			t.Errorf("%v, expected %v", code, want)
		}
	}
}
