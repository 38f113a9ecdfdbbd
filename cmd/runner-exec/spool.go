package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// With --spool-dir a run has two steps: the raw stream and the logs are recorded to files, and the other
// stages read these when the run is over. If that fails, because a disk is full for example, the files
// stay, and --resume does the second step again.

// logName is the file of a collected log, in the directories of --keep and --spool-dir.
func logName(layer string) string { return layer + ".log.ndjson" }

// runSpooled runs a command with a recording on disk.
func runSpooled(o Options, env *tool.Env) error {
	dir, made, tools, err := prepareSpool(o, env)
	if err != nil {
		return err
	}
	record := o
	record.SpoolDir, record.Stream = "", filepath.Join(dir, keepNames[0])
	record.spooled = map[string]string{}
	for _, l := range o.collects() {
		record.spooled[l.Name] = filepath.Join(dir, logName(l.Name))
	}
	ending := Run(record, env)
	var coded *tool.Error
	if ending != nil && (!errors.As(ending, &coded) || coded.Err != nil) {
		made.Remove() // not if something is in it
		return ending
	}
	if _, err := os.Stat(record.Stream); err != nil {
		made.Remove()
		return ending // a signal came before the command was started
	}
	second := o
	second.SpoolDir, second.record = dir, recordFlag(dir)
	if second.Archive, err = o.place(); err == nil {
		err = finish(second, tools, dir, env)
	}
	if err != nil {
		return tool.Fail(tool.ExitOwn, fmt.Errorf("%w; the recording is kept in %s", err, dir), "free some space, then: "+o.resumeCall(dir))
	}
	for _, path := range append([]string{record.Stream}, values(record.spooled)...) {
		os.Remove(path)
	}
	os.RemoveAll(recordsOf(dir))
	made.Remove()
	return ending
}

func values(m map[string]string) (list []string) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// recordsOf is the directory of what wrappers record, in that of --spool-dir.
func recordsOf(dir string) string { return filepath.Join(dir, "records") }

// recordFlag is the flag with the records of a recording, if it has some.
func recordFlag(dir string) []string {
	if _, err := os.Stat(recordsOf(dir)); err != nil {
		return nil
	}
	return []string{"--record=" + recordsOf(dir)}
}

// prepareSpool checks what the second step needs, before the first one. What it made is removed at the end, and what was there stays.
func prepareSpool(o Options, env *tool.Env) (dir string, made tool.Made, tools map[string]string, err error) {
	if dir, err = filepath.Abs(o.SpoolDir); err != nil {
		return "", nil, nil, err
	}
	if tools, err = findStages(o); err != nil {
		return "", nil, nil, err
	}
	if _, err := o.archivePlace(); err != nil {
		return "", nil, nil, err
	}
	if o.Archive == "-" && tool.IsTerminal(env.Stdout) {
		return "", nil, nil, tool.Fail(tool.ExitUsage, tool.ErrTerminal, "redirect it, or name a file")
	}
	if _, err := os.Lstat(filepath.Join(dir, keepNames[0])); err == nil {
		return "", nil, nil, tool.Fail(tool.ExitUsage, fmt.Errorf("%s has the recording of another run", o.SpoolDir), "finish it: "+o.resumeCall(dir), "or name another directory")
	}
	for _, path := range spoolNames(dir) { // --resume would take them for parts of the recording, and a run that succeeds removes those
		if _, err := os.Lstat(path); err == nil {
			return "", nil, nil, tool.Fail(tool.ExitUsage, fmt.Errorf("%s is there already, and a recording needs this name", schemas.Text(path)), "move it, or name another directory with --spool-dir")
		}
	}
	if made, err = tool.NewDirs(dir); err != nil {
		made.Remove()
		return "", nil, nil, fmt.Errorf("making the directory of --spool-dir: %w", err)
	}
	if err := env.Room(dir, "the recording", "--spool-dir"); err != nil {
		made.Remove()
		return "", nil, nil, err
	}
	return dir, made, tools, nil
}

// spoolNames are the names in the directory of --spool-dir that a recording may have beside its raw stream.
func spoolNames(dir string) []string {
	list := []string{recordsOf(dir)}
	for _, l := range schemas.LogLayers() {
		list = append(list, filepath.Join(dir, logName(l.Name)))
	}
	return list
}

// resumeCall is what to type to finish a recording.
func (o *Options) resumeCall(dir string) string {
	words := []string{"runner-exec", "--resume", tool.ShellWord(dir), "--archive", tool.ShellWord(o.Archive)}
	if o.CanonicalPids {
		words = append(words, "--canonical-pids")
	}
	if o.Times {
		words = append(words, "--times")
	}
	if !o.Kernel {
		words = append(words, "--no-kernel")
	}
	if o.NoFiltered {
		words = append(words, "--no-filtered")
	}
	if o.NoProcesses {
		words = append(words, "--no-processes")
	}
	if o.Noise != schemas.NoiseV0 {
		words = append(words, "--noise", o.Noise)
	}
	if o.Drop != "" {
		words = append(words, "--drop="+tool.ShellWord(o.Drop))
	}
	for _, p := range o.Packs {
		words = append(words, "--pack="+tool.ShellWord(p.Flag(p.Name)))
	}
	return strings.Join(words, " ")
}

// resume finishes a recording.
func resume(o Options, env *tool.Env) error {
	dir, err := filepath.Abs(o.Resume)
	if err != nil {
		return err
	}
	raw := filepath.Join(dir, keepNames[0])
	f, err := os.Open(raw)
	if _, gone := os.Stat(dir); gone != nil {
		return tool.Fail(tool.ExitIO, tool.CannotRead(o.Resume, gone), "name the directory of --spool-dir")
	}
	if err != nil {
		return tool.Fail(tool.ExitInput, fmt.Errorf("%s has no recording to finish: %w", o.Resume, err), "name the directory of --spool-dir")
	}
	defer f.Close()
	in, err := stream.NewReader(f, raw, schemas.StreamRaw)
	if err != nil {
		return tool.StreamError(err)
	}
	o.RunID, o.Collect, o.SpoolDir, o.record = in.Header().RunID, map[string]bool{}, dir, recordFlag(dir)
	if err := o.nameArchive(); err != nil {
		return err
	}
	for _, l := range schemas.LogLayers() {
		path := filepath.Join(dir, logName(l.Name))
		log, err := os.Open(path)
		if err != nil {
			continue
		}
		_, err = stream.NewReader(log, path, l.Log.Stream) // a later stage would take another file for a log that nobody collected
		log.Close()
		if err != nil {
			return tool.StreamError(err)
		}
		o.Collect[l.Name] = true
	}
	if o.Archive == "-" && tool.IsTerminal(env.Stdout) {
		return tool.Fail(tool.ExitUsage, tool.ErrTerminal, "redirect it, or name a file")
	}
	later := o
	later.Kernel = false // runner-capture has done its part
	tools, err := findStages(later)
	if err != nil {
		return err
	}
	if o.Archive, err = o.place(); err != nil {
		return err
	}
	if err := o.room(env); err != nil {
		return err
	}
	if err := finish(o, tools, dir, env); err != nil {
		return fmt.Errorf("%w; the recording is kept in %s", err, dir)
	}
	env.Sayf("the recording is not needed any more: rm -r %s", tool.ShellWord(o.Resume))
	return nil
}

// place is where the archive goes, or - for standard output.
func (o *Options) place() (string, error) {
	if o.Archive == "-" {
		return "-", nil
	}
	return o.archivePlace()
}

// finish runs the stages after the raw stream over the files of a recording.
func finish(o Options, tools map[string]string, dir string, env *tool.Env) error {
	p := &pipeline{ended: make(chan *stage, 8)}
	raw, err := os.Open(filepath.Join(dir, keepNames[0]))
	if err != nil {
		return err
	}
	mine := []*os.File{raw}
	closeAll := func() {
		for _, f := range mine {
			f.Close()
		}
		mine = nil
	}
	defer closeAll()
	var logs []*os.File
	for _, l := range o.collects() {
		f, err := os.Open(filepath.Join(dir, logName(l.Name)))
		if err != nil {
			return err
		}
		mine, logs = append(mine, f), append(logs, f)
	}
	signals := child.WatchEnding()
	defer signals.Stop()
	ends, err := p.startFilters(o, tools, [len(keepNames)]*tool.AtomicFile{}, raw, logs, env)
	mine = append(mine, ends...)
	closeAll()
	for err == nil && p.running() > 0 {
		select {
		case st := <-p.ended:
			if p.note(st); st.end.Status() != 0 {
				err = errStage
			}
		case sig := <-signals.C:
			err = fmt.Errorf("%v: the archive was not written", sig)
		}
	}
	if err == nil {
		p.printMessages(env.Stderr)
		return nil
	}
	if !errors.Is(err, errStage) {
		for _, st := range p.stages {
			p.kill(st)
		}
	}
	p.stop(patience)
	if st := p.culprit(); st != nil && errors.Is(err, errStage) {
		env.Stderr.Write(st.said.Bytes())
		err = fmt.Errorf("%s %s before the record was complete", st.name, st.end)
	}
	return err
}
