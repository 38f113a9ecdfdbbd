package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// keepNames are the files of --keep, one per pipe between two stages.
var keepNames = [...]string{"1-raw.ndjson", "2-kernel.ndjson", "3-joined.ndjson"}

// outputs are the files that runner-exec itself writes. They get their names only after
// the whole pipeline has succeeded.
type outputs struct {
	stream  *tool.AtomicFile                 // --stream FILE
	keep    [len(keepNames)]*tool.AtomicFile // --keep DIR
	logs    map[string][]*tool.AtomicFile    // layer → its --NAME-log, and --keep
	keepDir string
	madeDir bool
	archive string      // runner-pack's file, "" once the run has succeeded
	before  os.FileInfo // the file that had the archive's name before the run, or nil
	runID   string
}

// openOutputs opens the files that will be written and checks that the archive can be
// created, so that a long run does not fail only at its end.
func openOutputs(o Options) (*outputs, error) {
	out := &outputs{runID: o.RunID}
	if err := out.open(o); err != nil {
		out.discard()
		return nil, err
	}
	return out, nil
}

func (out *outputs) open(o Options) (err error) {
	out.logs = map[string][]*tool.AtomicFile{}
	for layer, path := range o.LogFiles {
		if path != "" && path != "-" {
			if err := out.openStream(o, path); err != nil {
				return err
			}
			if err := out.openLog(layer, path); err != nil {
				return err
			}
		}
	}
	for layer, path := range o.spooled {
		if err := out.openLog(layer, path); err != nil {
			return err
		}
	}
	switch o.Stream {
	case "-":
		return nil
	case "":
	default:
		if err := out.openStream(o, o.Stream); err != nil {
			return err
		}
		if out.stream, err = tool.CreateAtomic(o.Stream); err != nil {
			return cannotCreate("the stream file", o.Stream, err)
		}
		return nil
	}
	place, err := o.archivePlace()
	if err != nil {
		return err
	}
	out.before, _ = os.Lstat(place)
	out.archive = place // not before: what is there is not ours to remove
	if o.Keep == "" {
		return nil
	}
	if err := os.Mkdir(o.Keep, 0o777); err == nil {
		out.madeDir = true
		if err := tool.GiveDirToInvoker(o.Keep); err != nil {
			return fmt.Errorf("giving the directory of --keep to the user of sudo: %w", err)
		}
	} else if !errors.Is(err, os.ErrExist) {
		return cannotCreate("the directory of --keep,", o.Keep, err)
	}
	out.keepDir = o.Keep
	for i, name := range keepNames {
		if out.keep[i], err = tool.CreateAtomic(filepath.Join(o.Keep, name)); err != nil {
			return cannotCreate("the stream file", filepath.Join(o.Keep, name), err)
		}
	}
	for _, l := range o.collects() {
		if err := out.openLog(l.Name, filepath.Join(o.Keep, logName(l.Name))); err != nil {
			return err
		}
	}
	return nil
}

// openStream refuses to replace a file that is no stream.
func (out *outputs) openStream(o Options, path string) error {
	return tool.Replaceable(o.Force, path, "a stream of runner", tool.IsStream)
}

// archivePlace checks that the archive can be created, and returns where: what a symlink leads to.
// It is "" for standard output.
func (o *Options) archivePlace() (string, error) {
	if o.Archive == "-" {
		return "", nil
	}
	probe, err := tool.CreateAtomic(o.Archive)
	if err != nil {
		return "", cannotCreate("the archive", o.Archive, err)
	}
	probe.Abort()
	if err := tool.Replaceable(o.Force, o.Archive, "the archive of a run", tool.IsArchive); err != nil {
		return "", err
	}
	return probe.Path(), nil
}

// cannotCreate says why an output cannot be created, and what to type.
func cannotCreate(what, name string, err error) error {
	return tool.Fail(tool.ExitOwn, fmt.Errorf("creating %s %s: %w", what, name, err), tool.PlaceHints(name, err)...)
}

// room looks at the free space where the run will write.
func (o *Options) room(env *tool.Env) error {
	if err := tool.CanScratch(); err != nil {
		return err
	}
	if o.Stream != "" {
		return nil
	}
	if o.Archive != "-" && !tool.IsDevice(o.Archive) {
		if err := env.Room(filepath.Dir(o.Archive), "the archive", "--archive or "+tool.EnvArchiveDir); err != nil {
			return err
		}
	}
	return env.Room(os.TempDir(), "scratch files", "TMPDIR")
}

func (out *outputs) openLog(layer, path string) error {
	f, err := tool.CreateAtomic(path)
	if err != nil {
		return cannotCreate("the file of the "+layer+" log,", path, err)
	}
	out.logs[layer] = append(out.logs[layer], f)
	return nil
}

// all are the files other than the archive.
func (out *outputs) all() (files []*tool.AtomicFile) {
	for _, l := range schemas.LogLayers() {
		files = append(files, out.logs[l.Name]...)
	}
	for _, f := range out.keep {
		if f != nil {
			files = append(files, f)
		}
	}
	if out.stream != nil {
		files = append(files, out.stream)
	}
	return files
}

// commit gives the files their names. Called once every stage has succeeded.
func (out *outputs) commit() error {
	out.archive = ""
	for _, f := range out.all() {
		if err := f.Commit(); err != nil {
			return fmt.Errorf("the record is complete, but one of its files was not written: %w", err)
		}
	}
	out.madeDir = false
	return nil
}

// discard removes what was not committed. If a stage is killed between its last byte
// and its end, runner-pack may have written an archive although the run failed; this
// archive is removed too, but not what somebody else put there.
func (out *outputs) discard() {
	if out.archive != "" {
		now, err := os.Lstat(out.archive)
		if err == nil && (out.before == nil || !os.SameFile(out.before, now)) && now.Mode().IsRegular() && isOurs(out.archive, out.runID) {
			os.Remove(out.archive)
		}
	}
	for _, f := range out.all() {
		f.Abort()
	}
	if out.madeDir {
		os.Remove(out.keepDir) // fails if the directory is not empty
	}
}

// isOurs reports whether a file is the archive of a run of this id: its manifest, which comes first, has it.
func isOurs(path, runID string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if !tool.IsArchive(f) {
		return false
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false
	}
	in := bufio.NewReader(f)
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return false
		}
		in = bufio.NewReader(z)
	}
	manifest, _ := io.ReadAll(io.LimitReader(in, 1<<20))
	return bytes.Contains(manifest, []byte(`"run_id":"`+runID+`"`))
}
