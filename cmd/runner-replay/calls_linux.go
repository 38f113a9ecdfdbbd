package main

import (
	"path/filepath"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// toolCalls are the flags of runner-exec by which tool calls are decided and collected as they were, and rules are enforced again.
func (r *recorded) toolCalls(dir string) (args []string) {
	if p := r.env.Policy; p != nil {
		args = append(args, "--policy", r.path(schemas.BlobMember(p.SHA256)))
	}
	if r.started == nil {
		return args
	}
	if slices.Contains(r.started.EnvKeys, schemas.EnvPolicyLog) { // without a policy file, only this flag collects the log
		args = append(args, "--policy-log", filepath.Join(dir, "policy.ndjson"))
	}
	if schemas.CollectsSDK(r.started.AgentShim) {
		args = append(args, "--agent-shim", r.started.AgentShim)
	}
	return args
}
