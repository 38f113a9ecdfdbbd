package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// missing lists what went into the run and cannot be given again. Without it the replay would be another run.
func (r *recorded) missing(o *Options) (list []string) {
	say := func(format string, a ...any) { list = append(list, fmt.Sprintf(format, a...)) }
	if r.env == nil {
		say("the command and its environment (record with runner-exec --replayable)")
		return list
	}
	for _, v := range r.env.Env {
		if secret(v.Value) && !slices.Contains(o.Env, v.Name) {
			say("the variable %s, which is a secret (--env %s)", v.Name, v.Name)
		}
	}
	for _, w := range r.env.Command {
		if secret(w) {
			say("a word of the command, which is a secret")
		}
	}
	if r.box == nil {
		say("the files of the workspace (record behind runner-box)")
	} else if b := r.box.Base; b != nil && b.List == "" && o.Base == "" {
		say("the base %s, of which the archive has only the digest (--base DIR|TAR)", b.Digest)
	}
	if r.net == nil {
		say("the network (record behind runner-net)")
	}
	for _, e := range r.exchanges {
		if tunnel(e) {
			say("the connection to %s port %d, whose bytes cannot be given again", e.Host, e.Port)
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(r.policies)) {
		switch {
		case digest == "":
			say("the policy that decided about tool calls, which the record does not name (start the tool servers through runner-policy)")
		case !r.has(schemas.BlobMember(digest)): // it is the run's own, or a file of the workspace
			say("the policy file %s (record with runner-exec --replayable --policy FILE)", digest)
		}
	}
	return list
}

// secret reports whether a value was taken out, all or in part.
func secret(value string) bool { return strings.Contains(value, schemas.RedactionMark) }

// redacted reports whether the record of the environment lacks a secret.
func (r *recorded) redacted() bool {
	return r.env != nil && (slices.ContainsFunc(r.env.Command, secret) || slices.ContainsFunc(r.env.Env, func(v schemas.EnvVar) bool { return secret(v.Value) }))
}

// tunnel reports whether the bytes of a connection are not kept.
func tunnel(e *schemas.NetExchange) bool {
	return e.Scheme == schemas.NetTCP && e.Decision == schemas.NetAllow
}

// tunneled reports whether the record of the network lacks the bytes of a connection.
func (r *recorded) tunneled() bool { return slices.ContainsFunc(r.exchanges, tunnel) }

// uncovered are the inputs that nothing controls, of a run that is replayed all the same.
func (r *recorded) uncovered() (list []string) {
	if r.clock == nil {
		list = append(list, "clock and random numbers (record behind runner-clock)")
	}
	return append(list, "programs and files outside of the workspace are those of this machine")
}
