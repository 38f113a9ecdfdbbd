package assertion

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Blindness is what a record says nothing about, because nothing observed it: what its documents
// have there is only the empty form.
type Blindness struct {
	layers []blindLayer
	ended  bool // the end of the command is known
}

// blindLayer is a layer that is absent.
type blindLayer struct {
	name  string
	typed string              // what makes a record that has it
	empty map[string][]string // document → keys that say nothing then; none: all of it
	keys  []string            // keys of --require that say nothing then, whatever their value
}

// blindLayers are those that a document or a requirement can be about.
var blindLayers = []struct {
	is func(*verdict.Record) bool
	blindLayer
}{
	{func(r *verdict.Record) bool { return r.KernelLayer == schemas.LayerAbsent }, blindLayer{name: schemas.LayerKernel,
		typed: "record on Linux, as root and without --no-kernel: sudo runner-exec --archive run.tar.gz -- COMMAND",
		empty: map[string][]string{"surface": schemas.SurfaceSets[schemas.SetFilesystemPaths : schemas.SetProcessExecs+1], "health": {schemas.KeyRingbufDrops, schemas.KeyNetworkCoverage}, "kernel": nil, "processes": nil, keyEffects: nil, keyCounts: nil, keyFiltered: nil},
		keys:  []string{"drops", "network", "events"}}},
	{func(r *verdict.Record) bool { return r.PolicyLayer == schemas.LayerAbsent }, blindLayer{name: schemas.LayerPolicy,
		typed: "start the tool servers through runner-policy, and record with runner-exec --policy FILE or --policy-log",
		empty: map[string][]string{"surface": schemas.SurfaceSets[schemas.SetMCPTools : schemas.SetPolicyDecisions+1], "policy": nil}}},
	{func(r *verdict.Record) bool { return r.SDKLayer == schemas.LayerAbsent }, blindLayer{name: schemas.LayerSDK,
		typed: "record with runner-exec --agent-shim openai-agents, with an agent that reports itself",
		empty: map[string][]string{"sdk": nil}}},
}

// Blind is what a record says nothing about.
func Blind(r *verdict.Record) *Blindness {
	b := &Blindness{ended: r.ExitCode != nil || r.Signal != nil}
	for i := range blindLayers {
		if l := &blindLayers[i]; l.is(r) {
			b.layers = append(b.layers, l.blindLayer)
		}
	}
	return b
}

// Missing is why a requirement cannot be met by this record, "" if it can.
func (b *Blindness) Missing(key string) (why, typed string) {
	for _, l := range b.layers {
		for _, k := range l.keys {
			if k == key {
				return fmt.Sprintf("nothing observed it: the record has no %s layer", l.name), l.typed
			}
		}
	}
	if key == "success" && !b.ended {
		return "nothing observed the end of the command", "record it with runner-exec, which starts it"
	}
	return "", ""
}

// hide are the documents with false where they say nothing without the layer.
func (l *blindLayer) hide(input Documents) Documents {
	out := Documents{}
	for key, doc := range input {
		out[key] = doc
		hidden, about := l.empty[key]
		var keys map[string]json.RawMessage
		switch {
		case !about:
			continue
		case hidden == nil:
			out[key] = Document{value: json.RawMessage("false")}
			continue
		case json.Unmarshal(doc.value, &keys) != nil:
			continue
		}
		for _, k := range hidden {
			keys[k] = json.RawMessage("false")
		}
		if b, err := json.Marshal(keys); err == nil {
			out[key] = Document{value: b}
		}
	}
	return out
}

// why is the sentence about an assertion that holds only where nothing was observed.
func (l *blindLayer) why() string {
	var keys []string
	for _, document := range slices.Sorted(maps.Keys(l.empty)) {
		if l.empty[document] == nil {
			keys = append(keys, "."+document)
		}
		for _, k := range l.empty[document] {
			keys = append(keys, "."+document+"."+k)
		}
	}
	return fmt.Sprintf("the record has no %s layer; %s. Without it %s say nothing", l.name, l.typed, strings.Join(keys, ", "))
}
