package main

import "time"

// Verdicts of a replay.
const (
	verdictEqual   = "equal"
	verdictDrifted = "drifted"
	verdictOpen    = "not_closed"
)

// Result is what came of the replays of one archive.
type Result struct {
	SchemaVersion string         `json:"schema_version"`
	RunID         string         `json:"run_id"`
	Identity      string         `json:"identity"`
	Verdict       string         `json:"verdict"`
	Missing       []string       `json:"missing"`    // what went in and is not there
	Uncovered     []string       `json:"uncovered"`  // what nothing controls
	Programs      []Uncontrolled `json:"programs"`   // whose inputs are not all given again
	Layers        []Layer        `json:"layers"`     // of the last replay
	Runs          uint           `json:"runs"`       // that were replayed
	EqualRuns     uint           `json:"equal_runs"` // of them
}

// Layer is what the comparison of one layer says.
type Layer struct {
	Name  string `json:"name"`
	Equal bool   `json:"equal"`
	Line  int    `json:"line,omitzero"` // of the first difference, from 1
	Then  string `json:"recorded,omitempty"`
	Now   string `json:"replayed,omitempty"`
}

// Metrics are the numbers of --metrics.
type Metrics struct {
	SchemaVersion string  `json:"schema_version"`
	RunID         string  `json:"run_id"`
	Runs          uint    `json:"runs"`
	Fidelity      float64 `json:"replay_fidelity"`
	Coverage      float64 `json:"boundary_coverage"`
	Boundaries    []Bound `json:"boundaries"`
	// RevertMS is how long it took on average to take back what a replay changed, in a copy of the base; nil: there is nothing to take back.
	RevertMS *float64 `json:"mean_revert_time_ms"`
	Reverts  uint     `json:"reverts"` // that were measured
	ReplayMS float64  `json:"mean_replay_time_ms"`
}

// Bound is one boundary of a run: it is covered if its layer is there and says that it is whole.
type Bound struct {
	Name    string `json:"name"`
	Covered bool   `json:"covered"`
	Why     string `json:"why,omitempty"` // not
}

// reverts are the measured ways back.
type reverts struct {
	n    uint
	took time.Duration
	last time.Duration // of the last measure, with all that it needed
}
