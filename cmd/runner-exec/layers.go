package main

import (
	"errors"
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// layers decides which logs the command is given and what is enforced on it, and
// refuses what could not be kept.
func (o *Options) layers() error {
	o.CollectPolicy = o.PolicyLog != ""
	o.CollectSDK = o.AgentShim == "openai-agents"
	if o.Policy != "" {
		if err := o.loadPolicy(); err != nil {
			return err
		}
	}
	switch {
	case o.SDKLog != "" && !o.CollectSDK:
		return tool.Fail(tool.ExitUsage, errors.New("--sdk-log without a shim: the command is given no SDK log"),
			"runner-exec --agent-shim openai-agents --sdk-log "+o.SDKLog+" -- COMMAND")
	case o.Stream != "" && o.CollectPolicy && o.PolicyLog == "":
		return tool.Fail(tool.ExitUsage, errors.New("--stream starts no runner-correlate: the policy log needs a file to go to"),
			"runner-exec --stream "+o.Stream+" --policy "+o.Policy+" --policy-log FILE -- COMMAND")
	case o.Stream != "" && o.CollectSDK && o.SDKLog == "":
		return tool.Fail(tool.ExitUsage, errors.New("--stream starts no runner-correlate: the SDK log needs a file to go to"),
			"runner-exec --stream "+o.Stream+" --agent-shim openai-agents --sdk-log FILE -- COMMAND")
	}
	files := map[string]string{}
	for _, f := range [][2]string{{"--policy-log", o.PolicyLog}, {"--sdk-log", o.SDKLog}, {"--archive", o.Archive}, {"--stream", o.Stream}} {
		if f[1] == "" {
			continue
		}
		if other := files[f[1]]; other != "" {
			return tool.Usagef("%s and %s name the same file %s", other, f[0], f[1])
		}
		files[f[1]] = f[0]
	}
	if o.Network != nil && !o.Kernel {
		return tool.Fail(tool.ExitCannot,
			fmt.Errorf("%s has network rules, and without a kernel layer nothing enforces them", o.Policy),
			"on Linux, without --no-kernel: sudo runner-exec --policy "+o.Policy+" -- COMMAND",
			"or take the part network out of the file: then nothing is said to be enforced")
	}
	return nil
}

// loadPolicy reads the policy file once, before anything is started.
func (o *Options) loadPolicy() error {
	p, err := policy.Load(o.Policy)
	if err != nil {
		return tool.Fail(tool.ExitUsage, fmt.Errorf("--policy: %w", err), "runner-policy --check "+o.Policy)
	}
	o.CollectPolicy = o.CollectPolicy || p.HasToolRules
	o.PolicyDigest = p.Digest
	o.Network, _ = p.Network()
	return nil
}
