//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// fileModel has what the specification says, and the files that there are.
type fileModel struct {
	*schemas.FileRules
	there map[string]bool
}

// refusal is the first of the questions that a call asks the rules to which the answer is no.
func (m fileModel) refusal(c call) (number uint32, refused bool) {
	decide := func(path, op string) bool {
		if !refused {
			number, refused = m.Decide([]byte(path), op)
		}
		return refused
	}
	moves := func(from, to string) {
		if !refused {
			number, refused = m.Moves([]byte(from), []byte(to))
		}
	}
	switch c.Do {
	case "read":
		decide(c.To, schemas.HookRead)
	case "both":
		_ = decide(c.To, schemas.HookRead) || decide(c.To, schemas.HookWrite)
	case "write", "chmod", "times", "truncate":
		decide(c.To, schemas.HookWrite)
	case "mkdir":
		decide(c.To, schemas.HookCreate)
	case "unlink", "rmdir":
		decide(c.To, schemas.HookDelete)
	case "link":
		decide(c.To, schemas.HookCreate)
		moves(c.Via, c.To)
	case "rename", "exchange":
		decide(c.Via, schemas.HookDelete)
		if m.there[c.To] {
			decide(c.To, schemas.HookDelete)
		}
		decide(c.To, schemas.HookCreate)
		if c.Do == "exchange" {
			decide(c.Via, schemas.HookCreate)
			moves(c.To, c.Via)
		}
		moves(c.Via, c.To)
	}
	return number, refused
}

// fits reports whether the kernel would make the call without rules, so that it asks them.
func (m fileModel) fits(c call, dirs map[string]bool) bool {
	switch c.Do {
	case "mkdir":
		return !m.there[c.To] && dirs[filepath.Dir(c.To)]
	case "link":
		return m.there[c.Via] && !dirs[c.Via] && !m.there[c.To] && dirs[filepath.Dir(c.To)]
	case "rename":
		return m.there[c.Via] && !dirs[c.Via] && !dirs[c.To] && dirs[filepath.Dir(c.To)] && c.Via != c.To
	case "exchange":
		return m.there[c.Via] && m.there[c.To] && !dirs[c.Via] && !dirs[c.To] && c.Via != c.To
	case "rmdir":
		return dirs[c.To]
	case "read", "chmod", "times":
		return m.there[c.To]
	}
	return m.there[c.To] && !dirs[c.To]
}

// plant makes the files that the calls are about.
func plant(t *testing.T, d string) (there, dirs map[string]bool) {
	t.Helper()
	there, dirs = map[string]bool{d: true}, map[string]bool{d: true}
	for _, a := range []string{"a", "b"} {
		for _, b := range []string{"a", "b"} {
			dir := filepath.Join(d, a, b)
			testkit.Must(t, os.MkdirAll(dir, 0o755))
			there[filepath.Dir(dir)], dirs[filepath.Dir(dir)], there[dir], dirs[dir] = true, true, true, true
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o644))
			there[filepath.Join(dir, "a")] = true
		}
	}
	return there, dirs
}

// TestFilesModel compares the kernel with the model over random rules and calls. Each rule
// set gets fresh files, because a call that is allowed changes them.
func TestFilesModel(t *testing.T) {
	needLSM(t)
	sets, calls, refusals := 6, 0, 0
	if testing.Short() {
		sets = 2
	}
	p := startCaller(t, filesCaller)
	for seed := range uint64(sets) {
		d := filepath.Join(t.TempDir(), "top")
		there, dirs := plant(t, d)
		rnd := rand.New(rand.NewPCG(seed, 4))
		pick := func(s []string) string { return s[rnd.IntN(len(s))] }
		path := func() string {
			at := d
			for range rnd.IntN(4) {
				at = filepath.Join(at, pick([]string{"a", "b"}))
			}
			return at
		}
		files := pick([]string{"allow", "allow", "deny"})
		rules := fileRules(files, "allow", fileRule(1, pick([]string{"allow", "deny"}), path(), "exec"))
		for n := range 1 + rnd.IntN(5) {
			on := slices.DeleteFunc(slices.Clone(schemas.FileOps[:]), func(string) bool { return rnd.IntN(2) == 0 })
			if len(on) == 0 {
				on = []string{"read"}
			}
			rules.Rules = append(rules.Rules, fileRule(uint32(n+2), pick([]string{"allow", "deny"}), path(), on...))
		}
		s := enforceFiles(t, p.dir, rules)
		m, want := fileModel{rules, there}, map[uint32]uint64{}
		for range 150 {
			c := call{Do: pick([]string{"read", "write", "both", "chmod", "times", "truncate", "mkdir", "unlink", "rmdir", "link", "rename", "exchange"}), Via: path(), To: path()}
			if !m.fits(c, dirs) {
				continue
			}
			calls++
			number, refused := m.refusal(c)
			if refused {
				refusals++
				want[number]++
			}
			got := p.try(c)
			by, err := s.FileBlocked()
			if err != nil {
				t.Fatal(err)
			}
			if (got == syscall.EPERM) != refused || fmt.Sprint(by) != fmt.Sprint(want) {
				t.Fatalf("seed %d, %s: errno %v, refusals %v; the model says %v by %d, refusals %v\n%+v", seed, c, got, by, refused, number, want, rules)
			}
			if got == 0 {
				m.happened(c, dirs)
			}
		}
		s.Close()
	}
	t.Logf("%d calls, %d of them refused", calls, refusals)
	if refusals < calls/10 || refusals > calls*9/10 {
		t.Error("one-sided test")
	}
}

// happened notes what a call changed.
func (m fileModel) happened(c call, dirs map[string]bool) {
	switch c.Do {
	case "mkdir":
		m.there[c.To], dirs[c.To] = true, true
	case "unlink", "rmdir":
		delete(m.there, c.To)
		delete(dirs, c.To)
	case "link":
		m.there[c.To] = true
	case "rename":
		delete(m.there, c.Via)
		m.there[c.To] = true
	}
}
