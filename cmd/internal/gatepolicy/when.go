package gatepolicy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// Bounds of one question to a program.
const (
	programTime   = 5 * time.Second
	programMemory = 512 << 20 // bytes
)

// program is a jq program in a process of its own.
type program struct{ *jq.Program }

// inputShape is what programs about a whole plan see.
func inputShape() *jq.Shape { return jq.Common(jq.OfType(reflect.TypeFor[gate.Input]())) }

// program compiles a program over an object of this shape.
func (r *reader) program(n *yaml.Node, what string, shape *jq.Shape) *program {
	s, ok := r.Text(n, what)
	if !ok {
		return nil
	}
	if strings.TrimSpace(s) == "" || len(s) > maxText {
		r.Bad(n, fmt.Sprintf("%s with %d bytes, or nothing but blanks", what, len(s)), fmt.Sprintf("a jq program of at most %d", maxText), "")
		return nil
	}
	var keys []string
	if shape != nil {
		keys = slices.Sorted(maps.Keys(shape.Keys))
	}
	p, err := jq.NewProgram(s, jq.Form{Shape: shape, Memory: programMemory})
	if err != nil {
		r.Bad(n, what+" is not a jq program that may run here: "+err.Error(), "a program over the keys "+strings.Join(keys, ", ")+" that gives true or false", "")
		return nil
	}
	if r.programs++; r.programs == maxPrograms+1 {
		r.Bad(n, fmt.Sprintf("more than %d jq programs", maxPrograms), "fewer: each is a process", "")
	}
	return &program{p}
}

func (p *program) close() {
	if p != nil {
		p.Close()
	}
}

// fault is what a program got wrong about one input. Other errors are of the machine, and may be others the next time.
type fault string

func (f fault) Error() string { return string(f) }

// holds asks the program. One result is expected: true, or false or null.
func (p *program) holds(ctx context.Context, input []byte) (bool, error) {
	a, err := p.Ask(ctx, input, true, programTime)
	switch {
	case errors.Is(err, jq.ErrTime):
		return false, fmt.Errorf("the jq program takes longer than %s", programTime)
	case errors.Is(err, jq.ErrMemory):
		return false, fmt.Errorf("the jq program needs more than %d MiB", programMemory>>20)
	case err != nil:
		return false, err
	case a.Fault != "":
		return false, fault("the jq program failed: " + strict.Quote(a.Fault))
	case a.Count == 0:
		return false, fault("the jq program gave no result")
	case a.Count > 1:
		return false, fault("the jq program gave more than one result")
	case a.Kind != "boolean" && a.Kind != "null":
		return false, fault("the jq program gave a value of the type " + a.Kind + ", not true or false")
	}
	return a.True, nil
}
