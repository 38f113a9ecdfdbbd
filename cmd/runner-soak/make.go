package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// envSeed is the variable in which a run finds its seed.
const envSeed = "AGENT_SEED"

// made is a run that was made, before it is judged.
type made struct {
	*record
	archive string
	kind    string // of infra_error, or ""
	message string
	nothing bool // it was not made to its end, and is counted nowhere
}

// make makes one run, unless it was made before.
func (s *session) make(j job) made {
	if j.target != "" {
		return made{archive: j.target}
	}
	archive := s.folder.file(j.series.Name, j.index, archiveEnd)
	rec, err := s.folder.kept(j.series.Name, j.index)
	if err == nil && rec != nil {
		return s.again(j, rec, archive)
	}
	if err == nil {
		rec, err = s.execute(j, archive)
	}
	if err != nil {
		s.fail(err)
	}
	if rec == nil {
		return made{nothing: true}
	}
	m := made{record: rec, archive: archive}
	if time.Now().After(s.deadline) {
		m.kind, m.message = kindBudget, "the time budget ended during the run"
		return m // not kept: a soak that goes on makes it again
	}
	if rec.Archive == "" {
		m.kind, m.message = kindSubprocess, s.why(j, rec)
	}
	if err := s.folder.keep(j.series.Name, rec); err != nil {
		s.fail(err)
		return m
	}
	s.mu.Lock()
	s.folder.made++
	s.mu.Unlock()
	return m
}

// again takes a run that an earlier call made.
func (s *session) again(j job, rec *record, archive string) made {
	sum, err := digestOf(archive)
	if err == nil && sum != rec.Archive {
		err = tool.Fail(tool.ExitInput, fmt.Errorf("%s is not the archive that the run wrote", schemas.Text(archive)),
			"remove "+schemas.Text(s.folder.file(j.series.Name, j.index, recordEnd))+": the run is then made again")
	}
	if err != nil {
		s.fail(err)
		return made{nothing: true}
	}
	s.mu.Lock()
	s.folder.had++
	s.mu.Unlock()
	m := made{record: rec, archive: archive}
	if rec.Archive == "" {
		m.kind, m.message = kindSubprocess, s.why(j, rec)
	}
	return m
}

// execute runs the command once. Its record is nil if the run was interrupted.
func (s *session) execute(j job, archive string) (*record, error) {
	if err := os.Remove(archive); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, tool.CannotWrite(archive, err)
	}
	seed := seedOf(s.opt.Plan.Seed, j.index)
	begin := time.Now()
	end, err := s.spawn(j, archive, seed)
	took := time.Since(begin)
	if err != nil {
		return nil, err
	}
	if end == nil {
		return nil, nil
	}
	sum, err := digestOf(archive)
	if err != nil {
		return nil, tool.CannotRead(archive, err)
	}
	status := end.Status()
	// These are what runner-exec itself ends with when it did not begin: of a command that ended
	// with them there is an archive.
	if sum == "" && slices.Contains([]int{tool.ExitUsage, tool.ExitInput, tool.ExitCannot, tool.ExitIO, tool.ExitCannotRun, tool.ExitNotFound}, status) {
		s.tell(j)
		return nil, tool.Status(status)
	}
	return &record{Version: recordVersion, Index: j.index, Seed: seed, DurationMS: took.Milliseconds(), Status: status, Archive: sum}, nil
}

// spawn starts runner-exec and waits for it. A nil end is that of an interrupted run.
func (s *session) spawn(j job, archive string, seed uint64) (*child.Ending, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, tool.CannotRead(os.DevNull, err)
	}
	defer null.Close()
	output := s.folder.file(j.series.Name, j.index, outputEnd)
	s.mu.Lock()
	s.folder.willMake(output)
	s.mu.Unlock()
	out, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o666)
	if err != nil {
		return nil, tool.CannotWrite(output, err)
	}
	defer out.Close()
	if err := tool.GiveToInvoker(out); err != nil {
		return nil, tool.CannotWrite(output, err)
	}
	p, err := child.Start(child.Options{Name: "runner-exec", Program: s.program, Args: s.argv(j, archive), Env: environment(seed),
		Files: []*os.File{null, out, out}, OwnGroup: true})
	if err != nil {
		return nil, tool.Fail(tool.ExitIO, err)
	}
	s.started(p)
	end := p.Wait()
	if s.ended(p) {
		return nil, nil
	}
	return &end, nil
}

func (s *session) argv(j job, archive string) []string {
	// The time budget ends a run as --timeout does: runner-exec then ends all of its processes.
	timeout := max(time.Until(s.deadline), time.Millisecond)
	if s.opt.Timeout > 0 {
		timeout = min(timeout, s.opt.Timeout)
	}
	argv := append([]string{"runner-exec", "--archive", archive, "--force", "--timeout", timeout.String()}, s.opt.Exec...)
	return append(append(append(argv, "--"), j.series.Wrapper...), s.opt.Command...)
}

// environment is our own, with the seed.
func environment(seed uint64) []string {
	env := slices.DeleteFunc(child.Environ(), func(s string) bool { return strings.HasPrefix(s, envSeed+"=") })
	return append(env, envSeed+"="+strconv.FormatUint(seed, 10))
}

// maxMessage bounds what is shown of a message of another program, in characters.
const maxMessage = 400

// said are the last messages of runner-exec in the output of a run. The command wrote there too, so
// they are words for people, and nothing is decided by them.
func (s *session) said(j job) (lines []string) {
	const tail = 16 << 10
	f, err := os.Open(s.folder.file(j.series.Name, j.index, outputEnd))
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > tail {
		f.Seek(-tail, io.SeekEnd)
	}
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if line := scan.Text(); strings.HasPrefix(line, "runner-") && strings.Contains(line, ": ") {
			lines = append(lines, verdict.Printable(line, maxMessage))
		}
	}
	return lines
}

// why says why there is no archive.
func (s *session) why(j job, rec *record) string {
	text := fmt.Sprintf("runner-exec ended with exit status %d and wrote no archive", rec.Status)
	for _, line := range slices.Backward(s.said(j)) {
		if _, after, ok := strings.Cut(line, "error: "); ok {
			return text + ": " + after
		}
	}
	return text
}

// tell prints why runner-exec did not begin.
func (s *session) tell(j job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal != nil || s.signal != 0 {
		return
	}
	s.progress.end()
	for _, line := range s.said(j) {
		fmt.Fprintln(s.env.Stderr, line)
	}
}
