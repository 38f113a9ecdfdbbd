package main

import (
	"fmt"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
)

// maxDoubts bounds the ambiguity codes that a plan names.
const maxDoubts = 100

// evidenceOf says how well the run was observed. What is in doubt has to be accepted by name before anything is planned from it.
func (r *recorded) evidenceOf() gate.Evidence {
	c := r.record
	e := gate.Evidence{Origin: c.Origin, KernelLayer: c.KernelLayer, Correlation: c.Correlation, Command: append([]string{}, c.Command...), ExitCode: c.ExitCode, Signal: c.Signal}
	doubts := []string{}
	add := func(is bool, format string, a ...any) {
		if is {
			doubts = append(doubts, fmt.Sprintf(format, a...))
		}
	}
	add(c.Origin != schemas.OriginRunner, "origin: %s", c.Origin)
	add(c.KernelLayer != schemas.LayerComplete, "kernel_layer: %s", c.KernelLayer)
	add(c.RingbufDrops > 0, "ringbuf_drops: %d", c.RingbufDrops)
	add(c.CgroupCorrelation != schemas.CorrelationClean, "cgroup_correlation: %s", c.CgroupCorrelation)
	add(c.Correlation != schemas.CorrelationClean, "correlation: %s", c.Correlation)
	add(r.box == nil, "no box: what the run did to files, it did at once")
	if r.box != nil {
		add(r.box.Unread > 0, "unread: %d names of the workspace", r.box.Unread)
		add(r.box.BaseChanged > 0, "base_changed: %d names", r.box.BaseChanged)
	}
	peers := c.Surface[schemas.SurfaceSets[schemas.SetNetworkEndpoints]]
	add(r.net == nil && peers > 0, "no record of the network: the run reached for %d endpoints", peers)
	if r.net != nil {
		add(r.net.NamesLost > 0, "names_lost: %d", r.net.NamesLost)
	}
	slices.Sort(r.doubts)
	for i, code := range r.doubts {
		if i == maxDoubts {
			add(true, "%d more codes", len(r.doubts)-maxDoubts)
			break
		}
		doubts = append(doubts, code)
	}
	e.Doubts, e.Complete = doubts, len(doubts) == 0
	return e
}
