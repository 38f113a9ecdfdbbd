package main

import (
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/health"
	"github.com/runner-evidence/runner/schemas"
)

// checkStages compares the healths of all stages with the stream and with the observation
// health: it must be the one that follows from them.
func (r *router) checkStages() error {
	stages := append(slices.Clone(health.Sources[:]), []string{schemas.StageCorrelate})
	if len(r.stages) != len(stages) {
		return formf("%d stage healths, expected %d", len(r.stages), len(stages))
	}
	for i, names := range stages {
		if h := r.stages[i]; !slices.Contains(names, h.Stage) {
			return formf("stage health %d is of %.100q, expected %s", i+1, h.Stage, names[0])
		}
	}
	capture, normalize, correlate := &health.Capture{Health: r.stages[0]}, r.stages[1], r.stages[2]
	lines := r.layerLines(schemas.LayerKernel)
	if err := health.Flow(capture, normalize, lines); err != nil {
		return formf("%v", err)
	}
	if correlate.In != lines || correlate.Out != lines || len(correlate.Filtered) > 0 || len(correlate.Notes) > 0 {
		return formf("%s read %d and wrote %d kernel lines, the stream has %d", correlate.Stage, correlate.In, correlate.Out, lines)
	}
	return r.checkHealth(capture, normalize)
}

// checkHealth compares the observation health with the one that follows from the healths of
// the stages. The network fields follow from the kernel lines, which runner-verify reads.
func (r *router) checkHealth(capture *health.Capture, normalize *schemas.StageHealth) error {
	h := r.health
	want := health.Derive(r.id, capture, normalize, r.layerLines(schemas.LayerKernel), func(string) (string, string) { return h.NetworkCoverage, h.EndpointScope })
	for _, field := range [...]struct{ name, is, want string }{
		{"platform", h.Platform, want.Platform}, {"kernel_layer", h.KernelLayer, want.KernelLayer}, {"cgroup_correlation", h.CgroupCorrelation, want.CgroupCorrelation},
	} {
		if field.is != field.want {
			return formf("the observation health says %s=%.100s, the healths of the stages %s", field.name, field.is, field.want)
		}
	}
	if h.RingbufDrops != want.RingbufDrops {
		return formf("the observation health says ringbuf_drops=%d, the healths of the stages %d", h.RingbufDrops, want.RingbufDrops)
	}
	notes := slices.DeleteFunc(slices.Clone(h.Notes), aboutLogs)
	for i := range max(len(notes), len(want.Notes)) {
		switch {
		case i >= len(notes):
			return formf("the observation health lacks the note %.200q, which follows from the healths of the stages", want.Notes[i])
		case i >= len(want.Notes) || notes[i] != want.Notes[i]:
			return formf("the observation health has the note %.200q, which does not follow from the healths of the stages", notes[i])
		}
	}
	return nil
}

// aboutLogs reports whether a note is about what runner-correlate read besides the stream.
// runner-verify compares these with the layers.
func aboutLogs(note string) bool {
	code, _, _ := schemas.CutNote(note)
	for i := range schemas.Layers {
		if l := &schemas.Layers[i]; l.Name != schemas.LayerKernel && l.Note != nil && l.Note.Code == code && l.Note.By == schemas.StageCorrelate {
			return true
		}
	}
	return code == schemas.NoteWindows.Code || code == schemas.NoteToolPolicy.Code || code == schemas.NoteProcessAPI.Code
}
