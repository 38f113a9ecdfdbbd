package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// probe attaches everything to the caller's own cgroup, detaches it again, and says what
// works here. What capture needs and does not get is an error.
func probe(env *tool.Env) error {
	ses, err := attachHere(env)
	if err != nil {
		explain(env, err)
		return cannot(err)
	}
	defer ses.Close()
	for _, r := range probed(ses) {
		fmt.Fprintf(env.Stdout, "%s: %s\n", r.name, r.result)
	}
	return nil
}

func attachHere(env *tool.Env) (*bpf.Session, error) {
	without, err := env.Word("without", schemas.LoadWithout...)
	if err != nil {
		return nil, err
	}
	dir, err := cgroup.Own()
	if err != nil {
		return nil, err
	}
	return bpf.Attach(bpf.Options{Cgroup: dir, RingSize: 1 << 16, Without: bpf.ParseParts(without)})
}

// explain prints what a verifier says, all of it, with -v.
func explain(env *tool.Env, err error) {
	if refused := new(ebpf.VerifierError); errors.As(err, &refused) {
		env.Infof("%s", strings.TrimSpace(fmt.Sprintf("%+v", refused)))
	}
}

// result is one line of the probe: a part, whether it works here, and why.
type result struct{ name, result string }

func probed(ses *bpf.Session) []result {
	list := []result{
		{"kernel capture", because(schemas.CaptureAttached, ses.Loaded())},
		{schemas.FactIOUring, because(ses.IOUring, ses.IOUringForm)},
		{schemas.FactUnixHooks, ses.Unix},
		{schemas.FactResults, ses.Results},
		{schemas.FactPathObjects, ses.PathObjects},
		{schemas.FactRedundant, because(ses.Redundant, schemas.FactPreemption+": "+ses.Preemption.String())},
	}
	shared := schemas.CaptureAttached
	if err := bpf.CanShare(ses); err != nil {
		shared = schemas.UnavailableBecause + err.Error()
	}
	list = append(list, result{"shared probes", shared})
	for _, m := range schemas.FileMechanisms {
		state := schemas.CaptureAttached
		if err := inactive(m); err != nil {
			state = schemas.UnavailableBecause + err.Error()
		}
		list = append(list, result{"file rules by " + m, state})
	}
	return list
}

// because adds a reason, if there is one.
func because(state, why string) string {
	if why == "" {
		return state
	}
	return state + " (" + why + ")"
}
