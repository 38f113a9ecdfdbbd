// Package layertest has a layer that no run has, for tests that a row of the layer
// table, with its parser, is all that a stage needs of a further layer.
package layertest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// What the row has.
const (
	Name    = "sensor"
	Member  = "layers/sensor.ndjson"
	Schema  = "example.sensor_event.v0"
	Counter = "sensor_events"
	Stream  = "sensor.log"
	Env     = "SENSOR_LOG"
)

// event is a line of the layer.
type event struct {
	Schema string `json:"schema"`
	RunID  string `json:"run_id"`
	Seq    uint64 `json:"seq"`
	Value  string `json:"value"`
}

func parse(line []byte) (schemas.LayerLine, error) {
	var e event
	if err := schemas.Unmarshal(line, &e); err != nil {
		return schemas.LayerLine{}, err
	}
	if e.Schema != Schema || e.Value == "" {
		return schemas.LayerLine{}, fmt.Errorf("not a sensor event")
	}
	return schemas.LayerLine{RunID: e.RunID, Seq: e.Seq, Value: e}, nil
}

// Line is one line of the layer, and of its log.
func Line(runID string, seq int, value string) string {
	return fmt.Sprintf(`{"schema":%q,"run_id":%q,"seq":%d,"value":%q}`, Schema, runID, seq, value)
}

// Add puts the row into the layer table, in its place, until the test is over.
func Add(t testing.TB) {
	t.Helper()
	before := schemas.Layers
	t.Cleanup(func() { schemas.Layers = before })
	at := slices.IndexFunc(before, func(l schemas.Layer) bool { return l.Member > Member })
	schemas.Layers = slices.Insert(slices.Clone(before), at, schemas.Layer{
		Name: Name, Member: Member, Schema: Schema, Optional: true, MaxBytes: schemas.MaxLogLayer, Parse: parse, Counter: Counter,
		Note: &schemas.Note{Code: "sensor", By: schemas.StageCorrelate, Fields: []schemas.NoteField{{Key: Counter}}},
		Log: &schemas.LayerLog{Stream: Stream, Env: Env, Title: Name + " log", Nothing: "no event", GapStatus: schemas.CorrelationPartial,
			Whys: []string{schemas.WhyJSON, schemas.WhyField, schemas.WhyRunID, schemas.WhySeq}, OwnLines: true},
	})
}
