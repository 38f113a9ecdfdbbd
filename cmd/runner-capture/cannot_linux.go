package main

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/cause"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// cannot explains why capture does not work here, and what to type.
func cannot(err error) error {
	why, hints := cause.Here(true).Of(err, kindOf(err))
	word := "observe"
	if rules := new(*bpf.RulesError); errors.As(err, rules) {
		word = "enforce"
	}
	return tool.Fail(tool.ExitCannot, fmt.Errorf("cannot %s here: %w", word, why), hints...)
}

func kindOf(err error) cause.Kind {
	if old := new(*bpf.OldKernelError); errors.As(err, old) {
		return cause.TooOld
	}
	if refused := new(*ebpf.VerifierError); errors.As(err, refused) {
		return cause.Verifier
	}
	return cause.Other
}
