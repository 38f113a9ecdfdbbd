package main

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// derive checks what follows from several members. What would be derived from a
// member with faults of its own is left out: it could only repeat them.
func (v *verifier) derive() error {
	if v.events.lines < 2 && v.present(bundle.EventsName) {
		v.add(ruleEventsPair, bundle.EventsName, 0, "%d events, expected run_started and run_finished", v.events.lines)
	}
	layers := v.sound(bundle.EventsName) && v.sound(bundle.KernelName) && v.sound(bundle.PolicyName) && v.sound(bundle.SDKName)
	if layers && v.health != nil {
		v.checkHealth()
	}
	if layers && v.report != nil && v.health != nil {
		v.checkReport()
	}
	if v.surface == nil || v.surface.bad {
		return nil
	}
	return v.checkSurface(layers)
}

func (v *verifier) present(member string) bool { return v.seen[member].sha256 != "" }

// sound reports whether the member is there and its lines are without faults.
func (v *verifier) sound(member string) bool {
	if !v.present(member) {
		return false
	}
	for key := range v.alike {
		if key[1] == member && key[0] != ruleSize && key[0] != ruleDigest {
			return false
		}
	}
	return true
}

// checkSurface compares the surface with the union of the layers' values. Both
// are sorted, so one pass does it.
func (v *verifier) checkSurface(compare bool) error {
	const member = bundle.SurfaceName
	doc, err := newSurfaceReader(v.surface.reader())
	if err == nil {
		v.sameRun(member, 0, doc.runID)
		err = v.mergeSurface(doc, compare)
	}
	var form *formError
	if errors.As(err, &form) {
		// A small document has been through its JSON Schema already.
		if _, schema := v.alike[[2]string{ruleDocumentSchema, member}]; !schema || form.rule != ruleDocumentForm {
			v.add(form.rule, member, 0, "%s", form.msg)
		}
		return nil
	}
	return err
}

func (v *verifier) mergeSurface(doc *surfaceReader, compare bool) error {
	const member = bundle.SurfaceName
	set, value, err := doc.next()
	extra := func() {
		if compare {
			v.add(ruleSurfaceDerived, member, 0, "%s has %.200q, which no layer has", schemas.SurfaceSets[set], value)
		}
	}
	advance := func() {
		v.res.counted.Surface[set]++
		set, value, err = doc.next()
	}
	if compare {
		eachErr := v.values.Each(func(wantSet int, want []byte) error {
			for err == nil && (set < wantSet || set == wantSet && bytes.Compare(value, want) < 0) {
				extra()
				advance()
			}
			if err != nil && err != io.EOF {
				return err
			}
			if err == nil && set == wantSet && bytes.Equal(value, want) {
				advance()
				return nil
			}
			v.add(ruleSurfaceDerived, member, 0, "%s lacks %.200q, which a layer has", schemas.SurfaceSets[wantSet], want)
			return nil
		})
		if eachErr != nil {
			return eachErr
		}
	}
	for err == nil {
		extra()
		advance()
	}
	if err == io.EOF {
		return nil
	}
	return err
}
