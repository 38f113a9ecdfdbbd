package jq

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

func ask1(t *testing.T, text, input string, one bool) (Answer, error) {
	t.Helper()
	p, err := NewProgram(text, Form{})
	testkit.Must(t, err)
	defer p.Close()
	return p.Ask(t.Context(), []byte(input), one, testTime)
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		text  string
		one   bool
		want  Answer
		holds bool
	}{
		{".a == 1", true, Answer{Count: 1, Kind: "boolean", True: true}, true},
		{".a == 2", true, Answer{Count: 1, Kind: "boolean"}, false},
		{".a == 1, .b", false, Answer{Count: 2, Kind: "null"}, false},
		{".a, .a == 1, 0", false, Answer{Count: 1, Kind: "number"}, false},
		{".a == 1, .a < 3", false, Answer{Count: 2, Kind: "boolean", True: true}, true},
		{"repeat(true)", true, Answer{Count: 2, Kind: "boolean", True: true}, true},
		{"empty", false, Answer{}, false},
		{`true, error("x")`, false, Answer{Count: 1, Kind: "boolean", True: true, Fault: "error: x"}, false},
		{".n == 18446744073709551615 and .n != 18446744073709551614", true, Answer{Count: 1, Kind: "boolean", True: true}, true},
	} {
		a, err := ask1(t, c.text, `{"a":1,"n":18446744073709551615}`, c.one)
		if err != nil || a != c.want || a.Holds() != c.holds {
			t.Errorf("%s: %+v, %v", c.text, a, err)
		}
	}
}

// TestEnds: a program that nothing within its process would stop is ended, by time or by memory, and
// the next one is answered.
func TestEnds(t *testing.T) {
	for text, want := range map[string]error{
		"[repeat(1)]":                               ErrMemory,
		"def f: f; f":                               ErrTime,
		`"a" * 200000000 | length`:                  ErrMemory,
		`("a" * 3000000) | test("(a?){500}b")`:      ErrTime,
		`reduce range(40) as $i (7; . * .)`:         nil,
		`[range(100000000)] | length`:               ErrMemory,
		`reduce range(30) as $i ("ab"; . + .) | 1`:  ErrMemory,
		`[limit(400; repeat("x" * 1000000))] | add`: ErrMemory,
	} {
		p, err := NewProgram(text, Form{})
		testkit.Must(t, err)
		begin := time.Now()
		_, err = p.Ask(t.Context(), []byte("null"), false, testTime)
		if want != nil && !errors.Is(err, want) && !errors.Is(err, ErrTime) || want == nil && err != nil && !errors.Is(err, ErrTime) && !errors.Is(err, ErrMemory) || time.Since(begin) > 20*time.Second {
			t.Errorf("%s: %v after %s", text, err, time.Since(begin))
		}
		t.Logf("%-45s %v after %s", text, err, time.Since(begin).Round(time.Millisecond))
		p.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	p, _ := NewProgram("def f: f; f", Form{})
	defer p.Close()
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := p.Ask(ctx, []byte("1"), false, time.Minute); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if a, err := ask1(t, "true", "null", false); err != nil || !a.True {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestAskerGone: the process ends with who asked it, also while the program runs.
func TestAskerGone(t *testing.T) {
	if runtime.GOOS != "linux" {
		testkit.Skip(t, "the end of a jq program whose reader was killed", "it is looked for in /proc")
	}
	p, _ := NewProgram("def f: f; f", Form{})
	testkit.Must(t, p.start())
	pid := p.cmd.Process.Pid
	go p.Ask(t.Context(), []byte("null"), false, time.Minute)
	time.Sleep(100 * time.Millisecond)
	p.in.Close()
	testkit.Await(t, "the end of the process", func() bool {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}

// BenchmarkAsk is what one line costs.
func BenchmarkAsk(b *testing.B) {
	p, _ := NewProgram(`.kind == "openat"`, Form{})
	defer p.Close()
	for b.Loop() {
		if _, err := p.Ask(b.Context(), []byte(`{"kind":"openat","value":"/x"}`), true, time.Second); err != nil {
			b.Fatal(err)
		}
	}
}

// testTime is what a program of these tests may take.
const testTime = 2 * time.Second
