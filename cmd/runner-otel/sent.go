package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/otlp"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// state is the file of --state: how far an export came. The same archive and the same flags give the same requests, so
// that a number of them says it all.
type state struct {
	Version  string            `json:"schema_version"`
	Export   string            `json:"export"`   // digest of what the requests follow from
	Requests map[string]uint64 `json:"requests"` // of each signal, that were taken
	Rejected map[string]uint64 `json:"rejected"` // of each signal, records that the endpoint did not take
}

// maxState is the size of the file.
const maxState = 64 << 10

// sent sends requests and remembers which.
type sent struct {
	ctx     context.Context
	client  *otlp.Client
	file    string // or ""
	mu      sync.Mutex
	state   state
	seen    map[string]uint64 // requests of each signal so far
	skipped uint64
	message string // the last one of the endpoint
}

func newSent(ctx context.Context, e *evidence.Evidence, opt Options) (*sent, error) {
	export := schemas.DigestOf(fmt.Appendf(nil, "%q %q %q %q %d %t %q", opt.Client.URL, e.Report.RunID, e.Report.Identity, opt.Trace, opt.Generated, opt.Sensitive, tool.Version()))
	s := &sent{ctx: ctx, client: opt.Client, file: opt.State, seen: map[string]uint64{},
		state: state{Version: schemas.VersionOTelState, Export: export, Requests: map[string]uint64{}, Rejected: map[string]uint64{}}}
	if s.file == "" {
		return s, nil
	}
	if _, err := os.Stat(s.file); errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	b, err := tool.ReadFile(s.file, maxState)
	if err != nil || len(b) == 0 {
		return s, err
	}
	var old state
	if err := schemas.Unmarshal(b, &old); err != nil {
		return nil, tool.Failf(tool.ExitInput, "--state %s: %w", s.file, err)
	}
	if old.Version != s.state.Version || old.Export != s.state.Export {
		return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--state %s is of another export: another archive, endpoint, release or other flags", s.file), "name another file, or remove this one to send everything")
	}
	if old.Requests != nil {
		s.state.Requests = old.Requests
	}
	if old.Rejected != nil {
		s.state.Rejected = old.Rejected
	}
	return s, nil
}

// post sends a request, unless the state says that it was taken.
func (s *sent) post(signal otlp.Signal, request []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[signal.Name]++
	if s.seen[signal.Name] <= s.state.Requests[signal.Name] {
		s.skipped++
		return nil
	}
	answer, err := s.client.Post(s.ctx, signal, request)
	if err != nil {
		hints := []string{}
		if s.file != "" {
			hints = append(hints, "the same command goes on with this request")
		}
		return tool.Fail(tool.ExitIO, fmt.Errorf("%s: request %d of the %s: %w", s.client.URL, s.seen[signal.Name], signal.Name, err), hints...)
	}
	s.state.Requests[signal.Name]++
	if answer.Rejected > 0 {
		s.state.Rejected[signal.Name] += answer.Rejected
	}
	if answer.Message != `""` && answer.Message != "" {
		s.message = answer.Message
	}
	return s.save()
}

// save writes the state.
func (s *sent) save() error {
	if s.file == "" {
		return nil
	}
	b, err := schemas.Marshal(&s.state)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	return tool.WriteFile(s.file, tool.Bytes(append(b, '\n')))
}

// answer says what the endpoint took.
func (s *sent) answer() string {
	return fmt.Sprintf("%s took %d requests; %d were sent before, %d tries failed\n", s.client.URL, s.seen["logs"]+s.seen["traces"]-s.skipped, s.skipped, s.client.Retries)
}

// verdict says what the endpoint did not take.
func (s *sent) verdict(env *tool.Env) error {
	if s.message != "" {
		env.Warnf("the endpoint says: %s", s.message)
	}
	n, which := uint64(0), []string{}
	for _, signal := range slices.Sorted(maps.Keys(s.state.Rejected)) {
		n += s.state.Rejected[signal]
		which = append(which, fmt.Sprintf("%d of the %s", s.state.Rejected[signal], signal))
	}
	if n > 0 {
		return tool.Fail(tool.ExitNo, fmt.Errorf("the endpoint refused %d records: %s", n, strings.Join(which, ", ")))
	}
	return nil
}
