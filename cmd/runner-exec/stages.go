package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// stage is one process of the pipeline.
type stage struct {
	name   string
	cmd    *exec.Cmd
	said   *bounded     // what it wrote to stderr; nil if it writes to our own
	end    child.Ending // valid once it was received from pipeline.ended
	done   bool
	rank   int         // the position of its end among all ends that were received
	early  bool        // ended before the record could be complete
	killed bool        // by us, so it is not the cause of a failure
	gone   atomic.Bool // its process was waited for: the number can be another's soon
}

// pipeline is the running stages and the channels that connect them to runner-exec.
type pipeline struct {
	stages []*stage
	ended  chan *stage
	ready  chan error    // runner-capture: nil once, or why it will never be ready
	needs  schemas.Ready // once ready: what runner-capture asks for
	rec    recorder
	pumps  sync.WaitGroup
	mu     sync.Mutex
	fault  error // first failure of a --keep file
	ranks  int
}

// bounded keeps the first bytes that a stage writes to stderr. They are printed only
// after all stages have ended: one failure makes other stages fail too, and only the
// message of the cause is printed.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := 64<<10 - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// checksum is how the streams between the stages are sealed: those that become files, or leave, by SHA-256.
func (o *Options) checksum() string {
	if o.Stream != "" || o.Keep != "" {
		return schemas.ChecksumSHA256
	}
	return schemas.ChecksumCRC32C
}

// checksumArgs says so to a stage; SHA-256 is what it does anyway.
func (o *Options) checksumArgs() []string {
	if c := o.checksum(); c != schemas.ChecksumSHA256 {
		return []string{"--checksum", c}
	}
	return nil
}

func captureArgs(o Options, cgroup string) []string {
	args := []string{"--supervised", "--cgroup", cgroup, "--run-id", o.RunID,
		"--grace", o.Grace.String(), "--ring-size", strconv.FormatUint(o.RingSize, 10)}
	if o.SpoolSize != 0 {
		args = append(args, "--spool-size", strconv.FormatUint(o.SpoolSize, 10))
	}
	if o.Files != nil {
		args = append(args, "--file-mechanism", o.FileMechanism)
	}
	if o.ArgvKey != "" {
		args = append(args, "--argv-key", o.ArgvKey)
	}
	args = append(args, "--argv", o.Argv, "--redundant", o.Redundant, "--probes", o.Probes, "--without", o.Without, "--make-cgroup", "--remove-cgroup", "--ready-fd", "3")
	args = append(args, o.checksumArgs()...)
	for i, set := range o.ruleSets() {
		args = append(args, set.flag, tool.DescriptorPath(4+i))
	}
	return args
}

func stageArgs(o Options, name string, env *tool.Env) []string {
	var args []string
	if name != "runner-pack" {
		args = append(args, o.checksumArgs()...)
	}
	switch name {
	case "runner-normalize":
		if o.CanonicalPids {
			args = append(args, "--canonical-pids")
		}
		if o.Drop != "" {
			args = append(args, "--drop="+o.Drop)
		}
		if o.Kernel && !o.NoFiltered {
			args = append(args, "--filtered", "--noise", o.Noise)
		}
		if o.Kernel && !o.NoProcesses {
			args = append(args, "--processes")
		}
		if o.Collect[schemas.LayerPolicy] || o.Times {
			args = append(args, "--windows")
		}
	case "runner-correlate":
		if o.Times {
			args = append(args, "--times")
		}
		for i, l := range o.collects() {
			args = append(args, "--"+l.Name, tool.DescriptorPath(3+i))
		}
		args = append(args, o.record...)
	case "runner-pack":
		args = append(args, "-o="+o.Archive, "--force") // runner-exec has looked at what is there
		args = append(args, o.record...)
		files := 0
		for _, p := range o.Packs {
			args = append(args, "--pack="+p.Flag(tool.DescriptorPath(3+files)))
			if p.Text != nil {
				files++
			}
		}
		for _, f := range []string{"q", "v"} {
			if env.Flag.Bool(f) {
				args = append(args, "-"+f)
			}
		}
	}
	return args
}

// startPipeline starts every stage at once. On an error it returns the part that was
// started, so that the caller can stop it.
func startPipeline(o Options, tools map[string]string, out *outputs, sc *scope, l *logs, env *tool.Env) (*pipeline, error) {
	p := &pipeline{ended: make(chan *stage, 8), ready: make(chan error, 1)}
	var mine []*os.File // pipe ends that only the stages may keep open
	defer func() {
		for _, f := range mine {
			f.Close()
		}
	}()

	// first is where the raw stream goes: the next stage, a file, or our stdout.
	var first, input *os.File
	var err error
	switch {
	case o.Stream == "-":
		first = stdoutOf(env)
	case o.Stream != "":
		first = out.stream.File
	default:
		if first, input, err = p.link(out.keep[0]); err != nil {
			return p, err
		}
		mine = append(mine, input)
	}
	if o.Kernel {
		if o.Stream == "" {
			mine = append(mine, first)
		}
		args := captureArgs(o, sc.path)
		for _, f := range []string{"q", "v"} {
			if env.Flag.Bool(f) {
				args = append(args, "-"+f)
			}
		}
		if err := p.startCapture(tools["runner-capture"], args, o.ruleSets(), first, env); err != nil {
			return p, err
		}
		go prepare()
	} else {
		rec := &rawStream{opt: o, w: first, owned: o.Stream == ""}
		p.rec = rec
		p.ready <- nil
	}
	logEnds, err := l.route(out, stdoutOf(env), o.Stream == "")
	mine = append(mine, logEnds...)
	if err != nil {
		return p, err
	}
	if o.Stream != "" {
		return p, p.rec.open()
	}
	ends, err := p.startFilters(o, tools, out.keep, input, logEnds, env)
	mine = append(mine, ends...)
	if err != nil {
		return p, err
	}
	return p, p.rec.open()
}

// filters are the stages after the raw stream.
var filters = []string{"runner-normalize", "runner-correlate", "runner-pack"}

// startFilters starts them. It returns the ends of connections that only they may keep open.
func (p *pipeline) startFilters(o Options, tools map[string]string, keep [len(keepNames)]*tool.AtomicFile, input *os.File, logs []*os.File, env *tool.Env) (mine []*os.File, err error) {
	for i, name := range filters {
		cmd := exec.Command(tools[name], stageArgs(o, name, env)...)
		cmd.Stdin = input
		if dir := o.SpoolDir; dir != "" {
			cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		}
		switch name {
		case "runner-correlate":
			cmd.ExtraFiles = logs
		case "runner-pack":
			cmd.Stdout = stdoutOf(env)
			if cmd.ExtraFiles, err = o.packFiles(); err != nil {
				return mine, err
			}
			mine = append(mine, cmd.ExtraFiles...)
		}
		if name != "runner-pack" {
			w, next, err := p.link(keep[i+1])
			if err != nil {
				return mine, err
			}
			mine = append(mine, w, next)
			cmd.Stdout, input = w, next
		}
		if err := p.start(name, cmd, nil); err != nil {
			return mine, err
		}
	}
	return mine, nil
}

func (p *pipeline) startCapture(path string, args []string, sets []ruleSet, out *os.File, env *tool.Env) error {
	controlR, controlW, err := connect()
	if err != nil {
		return fmt.Errorf("making the control connection: %w", err)
	}
	defer controlR.Close()
	p.rec = &controlLines{w: controlW}
	readyR, readyW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making the ready pipe: %w", err)
	}
	defer readyW.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout = controlR, out
	cmd.ExtraFiles = []*os.File{readyW}
	for _, set := range sets {
		f, err := set.file()
		if err != nil {
			return err
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	if err := p.start("runner-capture", cmd, stderrOf(env)); err != nil {
		readyR.Close()
		return err
	}
	go func() {
		defer readyR.Close()
		p.ready <- p.readReady(readyR)
	}()
	return nil
}

// readReady reads the ready line.
func (p *pipeline) readReady(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, stream.MaxLine))
	if err != nil {
		return err
	}
	line, whole := bytes.CutSuffix(b, []byte("\n"))
	if !whole {
		return errors.New("runner-capture closed its ready descriptor before it was ready")
	}
	needs, err := schemas.ParseReady(line)
	if err == nil {
		p.needs = *needs
	}
	return err
}

// file returns a nameless file with the rules. The policy file was read once; later changes
// to it have no effect on the run.
func (s ruleSet) file() (*os.File, error) {
	line, err := schemas.Marshal(s.rules)
	if err != nil {
		return nil, err
	}
	f, err := tool.Nameless()
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(line, '\n'))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("writing the %s: %w", s.what, tool.ScratchError(err))
	}
	return f, nil
}

// start starts one stage in a process group of its own: a ^C at the terminal is
// for the command, the stages have to finish its record.
func (p *pipeline) start(name string, cmd *exec.Cmd, stderr *os.File) error {
	st := &stage{name: name, cmd: cmd}
	if stderr != nil {
		cmd.Stderr = stderr
	} else {
		st.said = &bounded{}
		cmd.Stderr = st.said
	}
	child.OwnGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	if slices.Contains(filters, name) {
		tool.BackgroundChild(cmd.Process.Pid) // else they all start beside runner-capture, for which the command waits
	} else {
		tool.ForegroundChild(cmd.Process.Pid)
	}
	p.stages = append(p.stages, st)
	go func() {
		err := cmd.Wait()
		st.gone.Store(true)
		if cmd.ProcessState != nil {
			st.end = child.EndingOf(cmd.ProcessState)
		} else {
			st.end = child.Ending{Err: err}
		}
		p.ended <- st
	}()
	return nil
}

// hurry gives the stages that go on the usual priority: the command, which they made room for, has ended.
func (p *pipeline) hurry() {
	for _, st := range p.stages {
		if slices.Contains(filters, st.name) && !st.gone.Load() {
			tool.NormalChild(st.cmd.Process.Pid)
		}
	}
}

// note records an end that was received from p.ended.
func (p *pipeline) note(st *stage) {
	p.ranks++
	st.done, st.rank = true, p.ranks
}

// running is the number of stages whose end was not received yet.
func (p *pipeline) running() int {
	n := 0
	for _, st := range p.stages {
		if !st.done {
			n++
		}
	}
	return n
}

// stop ends all stages. It kills only the first one, so that the others see an input
// that ends without a seal and clean up. Stages that have not ended after patience
// are killed too.
func (p *pipeline) stop(patience time.Duration) {
	p.hurry() // with the lowest priority they would not come to say what failed
	p.awaitCause()
	if len(p.stages) > 0 && p.stages[0].name == "runner-capture" {
		p.kill(p.stages[0])
	}
	if p.rec != nil {
		p.rec.abandon()
	}
	late := time.After(patience)
	for p.running() > 0 {
		select {
		case st := <-p.ended:
			p.note(st)
		case <-late:
			for _, st := range p.stages {
				p.kill(st)
			}
			late = nil
		}
	}
	p.pumps.Wait()
}

// awaitCause waits a moment if only consequences of a failure were seen so far. The
// kernel closes the pipes of a process that ends before it notifies the parent, so the
// stage that failed first can be reported last: to take the probes away takes a while.
func (p *pipeline) awaitCause() {
	if p.ranks == 0 && p.running() > 0 { // a stage that is about to end was perhaps seen in another way
		select {
		case st := <-p.ended:
			p.note(st)
		case <-time.After(300 * time.Millisecond):
			return
		}
	}
	late := time.After(2 * time.Second)
	for p.ranks > 0 && p.running() > 0 {
		if st := p.culprit(); st != nil && severity(st.end) < 3 {
			return
		}
		select {
		case st := <-p.ended:
			p.note(st)
		case <-late:
			return
		}
	}
}

func (p *pipeline) kill(st *stage) {
	if st.done {
		return
	}
	if st.cmd.Process.Kill() == nil {
		st.killed = true
	}
}

// culprit is the stage whose failure made the others fail, or nil. The stages after it
// report a truncated input (3), and those before it are killed by SIGPIPE: these are
// consequences.
func (p *pipeline) culprit() *stage {
	var worst *stage
	for _, st := range p.stages {
		if !st.done || st.killed && st.end.Signal == 9 || st.end.Status() == 0 && !st.early {
			continue
		}
		if worst == nil || severity(st.end) < severity(worst.end) ||
			severity(st.end) == severity(worst.end) && st.rank < worst.rank {
			worst = st
		}
	}
	return worst
}

// printMessages prints what the stages wrote to stderr, in the order of the pipeline.
func (p *pipeline) printMessages(w io.Writer) {
	for _, st := range p.stages {
		if st.said != nil {
			w.Write(st.said.Bytes())
		}
	}
}
