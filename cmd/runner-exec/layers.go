package main

import (
	"errors"
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/clock"
	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// layers decides which logs are collected and which rules are enforced. It refuses
// calls that ask for something that this run could not do.
func (o *Options) layers() error {
	o.Collect = map[string]bool{}
	for name, file := range o.LogFiles {
		o.Collect[name] = file != ""
	}
	shim := schemas.CollectsSDK(o.AgentShim)
	if o.Policy != "" {
		if err := o.loadPolicy(); err != nil {
			return err
		}
	}
	if sdk := o.LogFiles[schemas.LayerSDK]; sdk != "" && !shim {
		return tool.Fail(tool.ExitUsage, errors.New("--sdk-log needs --agent-shim: without it no SDK log is collected"),
			"runner-exec --agent-shim openai-agents --sdk-log "+sdk+" -- COMMAND")
	}
	o.Collect[schemas.LayerSDK] = shim
	o.Collect[schemas.LayerIntents] = o.Collect[schemas.LayerIntents] || o.Intents
	if err := o.places(); err != nil {
		return err
	}
	if o.Times && o.Kernel && clock.Shifted() {
		return tool.Fail(tool.ExitCannot, errors.New("--times does not work in this time namespace: its clock differs from the clock of the kernel's events"),
			"run without --times, or outside of the time namespace")
	}
	if o.Files == nil && o.FileMechanism != schemas.FileMechanismAuto {
		return tool.Fail(tool.ExitUsage, fmt.Errorf("--file-mechanism %s has nothing to enforce: there are no file rules", o.FileMechanism),
			"name a policy file with a section files or exec: --policy FILE", "or leave out --file-mechanism")
	}
	if sets := o.ruleSets(); len(sets) > 0 && !o.Kernel {
		return tool.Fail(tool.ExitCannot,
			fmt.Errorf("%s has %s, but without a kernel layer nothing enforces them", o.Policy, sets[0].what),
			"on Linux, without --no-kernel: sudo runner-exec --policy "+o.Policy+" -- COMMAND",
			"or remove "+sets[0].sections+" from the file: then the record does not claim that rules are enforced")
	}
	return nil
}

// ruleSet is one set of rules that runner-capture is to enforce, and its flag there.
type ruleSet struct {
	what, sections, flag string
	rules                any
}

func (o *Options) ruleSets() (sets []ruleSet) {
	if o.Network != nil {
		sets = append(sets, ruleSet{"network rules", "the section network", "--network-rules", o.Network})
	}
	if o.Files != nil {
		sets = append(sets, ruleSet{"file rules", "the sections files and exec", "--file-rules", o.Files})
	}
	return sets
}

// places checks that every collected log has a destination, and that no two outputs
// name the same file. A device can be named by each.
func (o *Options) places() error {
	files := map[string]string{}
	for _, l := range o.collects() {
		flag, file := "--"+l.Name+"-log", o.LogFiles[l.Name]
		if file == "" && o.Stream != "" {
			return tool.Fail(tool.ExitUsage, fmt.Errorf("--stream does not start runner-correlate, so the %s log needs a file", l.Name),
				"runner-exec --stream "+o.Stream+" "+flag+" FILE … -- COMMAND")
		}
		if other := files[file]; file != "" && other != "" && !tool.IsDevice(file) {
			return tool.Usagef("%s and %s name the same file %s", other, flag, file)
		}
		files[file] = flag
	}
	for _, f := range [][2]string{{"--archive", o.Archive}, {"--stream", o.Stream}} {
		if other := files[f[1]]; f[1] != "" && other != "" && !tool.IsDevice(f[1]) {
			return tool.Usagef("%s and %s name the same file %s", other, f[0], f[1])
		}
	}
	return nil
}

// loadPolicy reads the policy file once, before anything is started.
func (o *Options) loadPolicy() error {
	p, err := policy.Open(o.Policy)
	if err != nil {
		return err
	}
	o.Collect[schemas.LayerPolicy] = o.Collect[schemas.LayerPolicy] || p.HasToolRules
	o.PolicyDigest, o.PolicySource = p.Digest, p.Source
	o.Network, _ = p.Network()
	files, ok := p.Files()
	if !ok {
		return nil
	}
	if o.Files, err = policy.ResolveFiles(files); err != nil {
		return tool.Fail(tool.ExitCannot, fmt.Errorf("cannot enforce here: %s: %w", o.Policy, err))
	}
	return nil
}
