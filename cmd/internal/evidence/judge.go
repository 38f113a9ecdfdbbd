package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Limits of what is read.
var maxInput = bundle.DefaultLimits.Total + 1 // bytes of an archive: one that is not compressed can be that long

const (
	maxReport = 256 << 20 // bytes of runner-verify's report: the largest explanation fits
	maxWords  = 4 << 10   // bytes of its messages
)

// judge lets runner-verify check the file, and returns its report.
func judge(ctx context.Context, file *os.File) (*verdict.Report, error) {
	path, err := child.Sibling("runner-verify")
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	report, words := limited{most: maxReport, full: cancel}, limited{most: maxWords, full: func() {}}
	c := exec.CommandContext(ctx, path, "--json", "--explain", "-")
	c.Stdin, c.Stdout, c.Stderr = file, &report, &words
	err = c.Run()
	var ended *exec.ExitError
	switch {
	case report.cut:
		return nil, fmt.Errorf("its report is longer than %d bytes", maxReport)
	case err == nil:
	case !errors.As(err, &ended):
		return nil, err
	case ended.ExitCode() != tool.ExitNo && ended.ExitCode() != tool.ExitInput:
		return nil, fmt.Errorf("%w: %s", err, verdict.Printable(strings.TrimSpace(words.kept.String()), maxWords))
	}
	r, parseErr := verdict.Parse(report.kept.Bytes())
	switch {
	case parseErr != nil:
	case r.Valid != (err == nil):
		parseErr = fmt.Errorf("its report says valid=%t, its exit code %d", r.Valid, c.ProcessState.ExitCode())
	case r.Valid && (r.Explanation == nil || r.ArchiveDigest == ""):
		parseErr = errors.New("its report says nothing of the tool calls, or of the archive's bytes: is it of another release?")
	}
	return r, parseErr
}

// limited keeps the beginning of what is written. The buffer is not embedded: its ReadFrom would be
// called in place of Write, and keeps everything.
type limited struct {
	kept bytes.Buffer
	most int
	cut  bool
	full func() // called when there is more
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.most-l.kept.Len())
	l.kept.Write(p[:n])
	if n < len(p) && !l.cut {
		l.cut = true
		l.full()
	}
	return len(p), nil
}
