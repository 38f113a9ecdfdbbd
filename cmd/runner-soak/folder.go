package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Names in the folder of a soak.
const (
	planFile   = "soak.json"
	lockFile   = "soak.lock"
	archiveEnd = ".tar.gz"
	outputEnd  = ".out"
	recordEnd  = ".json"
)

// maxRecord bounds a file of the folder that is read again.
const maxRecord = 1 << 20

// folder keeps what a soak did, so that it can go on.
type folder struct {
	path  string
	lock  *os.File
	fresh bool // made for this call, which names no folder
	had   int  // runs that were there already
	made  int  // runs that this call added

	paths []string // directories and files that this call made, but for archives and what is kept of a run; each after what it is in
}

// planned is soak.json. The time budget is not part of it: a soak may go on with another one.
type planned struct {
	Version string   `json:"schema_version"`
	Plan    Plan     `json:"plan"`
	Faults  []Fault  `json:"faults"`
	Exec    []string `json:"exec"`
	Timeout int64    `json:"timeout_ms"`
	// Command is the digest of the words of the command: they can have secrets.
	Command string `json:"command_sha256"`
}

// record is what is kept of a run beside its archive: what the archive does not say.
type record struct {
	Version    string `json:"schema_version"`
	Index      int    `json:"index"`
	Seed       uint64 `json:"seed"`
	DurationMS int64  `json:"duration_ms"`
	Status     int    `json:"exit_status"`    // of runner-exec
	Archive    string `json:"archive_sha256"` // "" if there is none
}

const (
	planVersion   = "soak-plan-v1"
	recordVersion = "soak-run-v1"
)

// openFolder opens or makes the folder of a soak.
func openFolder(o *Options) (f *folder, err error) {
	f = &folder{path: o.Dir}
	if f.path == "" {
		f.fresh = true
		if f.path, err = os.MkdirTemp("", "runner-soak-"); err == nil {
			err = tool.GiveDirToInvoker(f.path)
		}
	} else {
		err = f.makeDir(f.path)
	}
	if err != nil {
		f.clear()
		if f.path == "" {
			return nil, tool.ScratchError(err)
		}
		return nil, tool.CannotWrite(f.path, err)
	}
	if err := f.take(); err != nil {
		return nil, err
	}
	err = f.plan(o)
	for _, fault := range o.Faults {
		if err != nil {
			break
		}
		dir := filepath.Join(f.path, fault.Name)
		if e := f.makeDir(dir); e != nil {
			err = tool.CannotWrite(dir, e)
		}
	}
	if err != nil {
		f.undo()
		return nil, err
	}
	return f, nil
}

func (f *folder) makeDir(path string) error {
	made, err := tool.NewDirs(path)
	f.paths = append(f.paths, made...)
	return err
}

// take takes the lock of the folder.
func (f *folder) take() (err error) {
	path := filepath.Join(f.path, lockFile)
	f.willMake(path)
	if f.lock, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		f.clear()
		return tool.CannotWrite(f.path, err)
	}
	mine, err := f.lock.Stat()
	if !lockWhole(f.lock) {
		f.lock.Close()
		return tool.Usagef("%s is in use by another runner-soak", schemas.Text(f.path))
	}
	if now, gone := os.Stat(path); err == nil && (gone != nil || !os.SameFile(mine, now)) { // another call ended meanwhile, and left nothing
		f.lock.Close()
		return tool.Fail(tool.ExitUsage, fmt.Errorf("%s was in use by another runner-soak", schemas.Text(f.path)), "call it again")
	}
	if err == nil {
		err = tool.GiveToInvoker(f.lock)
	}
	if err != nil {
		f.undo()
		return tool.CannotWrite(f.path, err)
	}
	return nil
}

// willMake notes a file that this call makes, unless it is there. Who calls it holds the lock, or comes before it.
func (f *folder) willMake(path string) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		f.paths = append(f.paths, path)
	}
}

// undo ends the use of a folder in which this call has made no run. Nothing that it made stays, so that the next call can be another one.
func (f *folder) undo() {
	f.clear()
	f.lock.Close()
	if f.fresh {
		os.RemoveAll(f.path)
	}
}

// clear removes what this call made, the lock after all that it protects: who has the next lock begins anew.
func (f *folder) clear() {
	for _, path := range slices.Backward(f.paths) {
		os.Remove(path) // a directory only if it is empty
	}
}

// empty reports whether the folder has no run of a plan: then there is nothing to go on with.
func (f *folder) empty(p *planned) bool {
	for _, fault := range p.Faults {
		list, err := os.ReadDir(filepath.Join(f.path, fault.Name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		for _, e := range list {
			if strings.HasSuffix(e.Name(), recordEnd) {
				return false
			}
		}
	}
	return true
}

// plan writes the plan, or compares it with the one that is there.
func (f *folder) plan(o *Options) error {
	p := planned{planVersion, o.Plan, o.Faults, append([]string{}, o.Exec...), o.Timeout.Milliseconds(), commandDigest(o.Command)}
	p.Plan.Budget = 0
	want, err := schemas.Marshal(p)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	path := filepath.Join(f.path, planFile)
	b, err := tool.ReadFile(path, maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.willMake(path)
		return writeWhole(path, want)
	case err != nil:
		return err
	}
	var old planned
	if err := schemas.Unmarshal(b, &old); err != nil || old.Version != planVersion {
		return tool.Failf(tool.ExitInput, "%s is not the plan of a soak: %w", schemas.Text(path), orOther(err))
	}
	if again, err := schemas.Marshal(old); err != nil || string(again) == string(want) {
		return err
	}
	if f.empty(&old) {
		return writeWhole(path, want)
	}
	return tool.Fail(tool.ExitUsage, fmt.Errorf("%s has another soak: %s", schemas.Text(f.path), strings.Join(old.differs(&p), ", ")),
		"give another --dir, or the call that began that soak")
}

func orOther(err error) error {
	if err == nil {
		return errors.New("it is of another version")
	}
	return err
}

// differs names what two plans do not have in common.
func (p *planned) differs(q *planned) (list []string) {
	for _, c := range []struct {
		what string
		a, b any
	}{{"--iterations", p.Plan.Iterations, q.Plan.Iterations}, {"--seed", p.Plan.Seed, q.Plan.Seed}, {"--suite", p.Plan.Suite, q.Plan.Suite},
		{"--shard", p.Plan.Shard, q.Plan.Shard}, {"--pack (its content)", p.Plan.Packs, q.Plan.Packs}, {"the decision policy", p.Plan.Policy, q.Plan.Policy},
		{"--fault", p.Faults, q.Faults}, {"--exec", p.Exec, q.Exec}, {"--timeout", p.Timeout, q.Timeout}, {"the command", p.Command, q.Command},
		{"the limits of this release", p.Plan.Limits, q.Plan.Limits}} {
		a, errA := schemas.Marshal(c.a)
		b, errB := schemas.Marshal(c.b)
		if errA != nil || errB != nil || string(a) != string(b) {
			list = append(list, c.what+" differs")
		}
	}
	return list
}

func commandDigest(words []string) string {
	h := sha256.New()
	for _, w := range words {
		fmt.Fprintf(h, "%d:%s", len(w), w)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// file is the name of one run's file.
func (f *folder) file(fault string, index int, end string) string {
	return filepath.Join(f.path, fault, fmt.Sprintf("%04d%s", index, end))
}

// kept returns what is kept of a run that was finished, or nil.
func (f *folder) kept(fault string, index int) (*record, error) {
	path := f.file(fault, index, recordEnd)
	b, err := tool.ReadFile(path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := schemas.Unmarshal(b, r); err != nil || r.Version != recordVersion || r.Index != index {
		return nil, tool.Fail(tool.ExitInput, fmt.Errorf("%s is not the record of run %d: %w", schemas.Text(path), index, orOther(err)), "remove it: the run is then made again")
	}
	return r, nil
}

// keep writes what is kept of a run: from then on it is finished.
func (f *folder) keep(fault string, r *record) error {
	b, err := schemas.Marshal(r)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	return writeWhole(f.file(fault, r.Index, recordEnd), b)
}

// close ends the use of the folder. One that nobody asked for is removed, unless it is still of use.
func (f *folder) close(useful bool) {
	f.lock.Close()
	if f.fresh && !useful {
		os.RemoveAll(f.path)
	}
}

// writeWhole writes a document with its LF, whole or not at all.
func writeWhole(path string, b []byte) error {
	return tool.WriteFile(path, tool.Bytes(append(b, '\n')))
}

// digestOf is the digest of a file, and "" if there is none.
func digestOf(path string) (string, error) {
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
