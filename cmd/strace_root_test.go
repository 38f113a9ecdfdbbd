//go:build linux

package cmd_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// traced is one open as strace saw it. With -y strace prints the path of a returned
// descriptor, which it reads from /proc.
var traced = regexp.MustCompile(`^(\d+) +(openat2?|open|creat)\((.*)\) += (-?\d+)(?:<(.*)>)?(?: (E[A-Z0-9]+).*)?$`)

// TestStraceAgrees runs strace inside of the run and compares it with the raw stream, which
// is not filtered. Every open that strace saw is recorded with the same process, result
// and path, and the processes that strace watched have no other.
func TestStraceAgrees(t *testing.T) {
	requireBPF(t)
	testkit.Programs(t, "an independent witness", "strace")
	dir := shortDir(t)
	script := `cd ` + dir + ` && mkdir -p a/b && for i in 1 2 3 4 5 6 7; do echo $i >a/b/$i; ln -s b/$i a/l$i; done
		cat a/l* >all; grep -r 3 . >found; ls -la a >/dev/null; cp -r a c; sort all | uniq | wc -l >n; cat nothing 2>/dev/null; true`
	m := measure(t, []string{"--keep", dir + "/keep"}, "strace", "-f", "-qq", "-y", "-s", "4096", "-o", dir+"/trace",
		"-e", "trace=open,openat,openat2,creat", "sh", "-c", script)
	if m.code != 0 {
		t.Fatal(m.outcome)
	}
	openArchive(t, m.path).complete(t)

	witness, pids := straceOpens(t, dir+"/trace")
	recorded := recordedOpens(t, dir+"/keep", pids)
	if len(witness) < 100 {
		t.Fatalf("strace saw only %d opens", len(witness))
	}
	t.Logf("strace saw %d opens of %d processes, recorded are %d", len(witness), len(pids), len(recorded))
	sort.Strings(witness)
	sort.Strings(recorded)
	shown := 0
	for i, j := 0, 0; (i < len(witness) || j < len(recorded)) && shown < 20; {
		switch {
		case j == len(recorded) || i < len(witness) && witness[i] < recorded[j]:
			t.Errorf("strace saw it, the record does not hold it: %s", witness[i])
			i, shown = i+1, shown+1
		case i == len(witness) || recorded[j] < witness[i]:
			t.Errorf("recorded, strace did not see it: %s", recorded[j])
			j, shown = j+1, shown+1
		default:
			i, j = i+1, j+1
		}
	}
}

// errnos are the numbers of the names that strace prints.
var errnos = func() map[string]int {
	m := map[string]int{}
	for e := range 134 {
		m[unix.ErrnoName(unix.Errno(e))] = e
	}
	return m
}()

func straceOpens(t *testing.T, path string) (opens []string, pids map[int]bool) {
	t.Helper()
	pids = map[int]bool{}
	pending := map[string]string{}
	eachLine(t, path, func(l string) {
		pid, rest, _ := strings.Cut(l, " ")
		rest = strings.TrimLeft(rest, " ")
		if head, ok := strings.CutSuffix(rest, " <unfinished ...>"); ok {
			pending[pid] = head
			return
		}
		if i := strings.Index(rest, " resumed>"); strings.HasPrefix(rest, "<... ") && i > 0 {
			l = pid + " " + pending[pid] + rest[i+len(" resumed>"):]
		}
		f := traced.FindStringSubmatch(l)
		if f == nil {
			return
		}
		n, _ := strconv.Atoi(f[1])
		pids[n] = true
		ret := f[4]
		if f[6] != "" {
			ret = strconv.Itoa(-errnos[f[6]])
		}
		opens = append(opens, fmt.Sprintf("%d %s %s", n, ret, f[5]))
	})
	return opens, pids
}

// recordedOpens reads the raw stream of a run kept in dir.
func recordedOpens(t *testing.T, dir string, pids map[int]bool) (opens []string) {
	t.Helper()
	files, _ := filepath.Glob(dir + "/*")
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			var e struct {
				Schema, Op, Path string
				Pid              int
				Ret              int64
			}
			if err := json.Unmarshal(s.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			if e.Schema != "runner.raw_event.v0" || !pids[e.Pid] {
				continue
			}
			switch e.Op {
			case "open", "openat", "openat2", "creat":
				opens = append(opens, fmt.Sprintf("%d %d %s", e.Pid, e.Ret, e.Path))
			}
		}
	}
	return opens
}
