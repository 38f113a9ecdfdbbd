package attestation

import "github.com/runner-evidence/runner/schemas"

// runtimeTrace is in-toto's predicate runtime-trace v0.1
// (https://github.com/in-toto/attestation/blob/main/spec/predicates/runtime-trace.md). It has the
// values of the capability surface: each once, without who did it or how often. Files have no
// digest: eBPF sees an open, not the content.
type runtimeTrace struct {
	Monitor struct {
		Type        string         `json:"type"`
		TracePolicy map[string]any `json:"tracePolicy"`
	} `json:"monitor"`
	MonitoredProcess struct {
		HostID string `json:"hostID"`
		Type   string `json:"type"`
		Event  string `json:"event"`
	} `json:"monitoredProcess"`
	MonitorLog struct {
		Process    []resource `json:"process"`
		Network    []resource `json:"network"`
		FileAccess []resource `json:"fileAccess"`
	} `json:"monitorLog"`
	Metadata map[string]any `json:"metadata"`
}

// resource is a ResourceDescriptor.
type resource struct {
	Name string `json:"name"`
}

// trace makes the predicate. How well the monitor saw is with what it did: it is part of its policy.
func (r *Run) trace() *runtimeTrace {
	t := new(runtimeTrace)
	t.Monitor.Type = MeasuredRun
	t.Monitor.TracePolicy = map[string]any{"observation_health": r.Health, "identity": r.Identity}
	t.MonitoredProcess.HostID = "not recorded"
	t.MonitoredProcess.Type = "command"
	t.MonitoredProcess.Event = r.RunID
	t.MonitorLog.Process = resources(r.Surface[schemas.SurfaceSets[schemas.SetProcessExecs]])
	t.MonitorLog.Network = resources(r.Surface[schemas.SurfaceSets[schemas.SetNetworkEndpoints]])
	t.MonitorLog.FileAccess = resources(r.Surface[schemas.SurfaceSets[schemas.SetFilesystemPaths]])
	t.Metadata = map[string]any{}
	return t
}

func resources(names []string) []resource {
	list := make([]resource, 0, len(names))
	for _, name := range names {
		list = append(list, resource{name})
	}
	return list
}
