package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestMain: the test binary is also a worker, as $PROC_TEST_WORKER says.
func TestMain(m *testing.M) {
	if how := os.Getenv("PROC_TEST_WORKER"); how != "" {
		work(how)
		return
	}
	if IsHelper() {
		Help()
		return
	}
	testkit.Heed()
	os.Exit(m.Run())
}

// work answers each job with its upper case.
func work(how string) {
	for n := 0; ; n++ {
		number, b, err := readJob(os.Stdin)
		if err != nil {
			return
		}
		switch {
		case how == "ends" && n == 2:
			os.Exit(3)
		case how == "hangs" && n == 2:
			time.Sleep(time.Hour)
		case how == "another":
			number++
		case how == "says":
			fmt.Fprint(os.Stderr, "much")
		}
		if writeJob(os.Stdout, int(number), bytes.ToUpper(b)) != nil {
			return
		}
	}
}

func worker(t testing.TB, how string) *Request {
	self, err := os.Executable()
	testkit.Must(t, err)
	return &Request{Argv: request(self).Argv, Env: []Var{{[]byte("PROC_TEST_WORKER"), []byte(how)}}}
}

// TestMap: results have the order of the jobs, for any number of workers; a worker that fails is a failure of the whole,
// and none is left.
func TestMap(t *testing.T) {
	var jobs, want [][]byte
	for i := range 50 {
		s := fmt.Sprintf("job %d %s", i, strings.Repeat("x", i*i*50))
		jobs, want = append(jobs, []byte(s)), append(want, []byte(strings.ToUpper(s)))
	}
	caps := Caps{1 << 20, 3, 20000, 0}
	for _, n := range []int{1, 3, 50, 64} {
		got, err := newRunner(t, nil).Map(worker(t, "good").Append(nil), caps.Append(nil), n, jobs)
		if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%d workers: %v", n, err)
		}
	}
	if got, err := newRunner(t, nil).Map(worker(t, "good").Append(nil), caps.Append(nil), 3, nil); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
	for how, words := range map[string]string{"ends": "it ended before its answers", "another": "not one of a job that it has", "says": "OUTPUT_LIMIT: standard error has more than 3 bytes (max_stderr_bytes", "hangs": "TIMEOUT: still running after 200 ms (timeout_ms"} {
		c := caps
		if how == "hangs" {
			c.TimeoutMS = 200
		}
		if _, err := newRunner(t, nil).Map(worker(t, how).Append(nil), c.Append(nil), 3, jobs); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", how, err)
		}
	}
	if _, err := newRunner(t, nil).Map(request("/none").Append(nil), caps.Append(nil), 2, jobs); err == nil || !strings.Contains(err.Error(), "SPAWN_FAILED") {
		t.Error(err)
	}
	if _, err := newRunner(t, DenyAll()).Map(worker(t, "good").Append(nil), caps.Append(nil), 2, jobs); err == nil || !strings.Contains(err.Error(), "POLICY_DENIED") {
		t.Error(err)
	}
	if left := children(); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
}

// TestItems: lists are written as they are read.
func TestItems(t *testing.T) {
	list := [][]byte{{}, []byte("a"), bytes.Repeat([]byte("b"), 1000)}
	b := AppendItems(nil, list)
	if got, err := ParseItems(b); err != nil || !slices.EqualFunc(got, list, bytes.Equal) {
		t.Error(got, err)
	}
	for n := range len(b) {
		if _, err := ParseItems(b[:n]); err == nil {
			t.Errorf("the first %d bytes are taken", n)
		}
	}
}
