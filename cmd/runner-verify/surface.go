package main

import (
	"bytes"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/valueset"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// surfaceValues are the values of the surface document, which comes before the
// layers that it follows from, and the values that the layers give.
type surfaceValues struct {
	document valueset.List
	layers   *valueset.AsyncWriter
	whole    bool // the document was walked to its end
	counted  [len(schemas.SurfaceSets)]uint64
	first    [len(schemas.SurfaceSets)][]string // the first values of the document, for --explain
	room     [len(schemas.SurfaceSets)]verdict.ListRoom
}

func (s *surfaceValues) init() { s.layers = valueset.NewAsyncWriter() }

func (s *surfaceValues) close() {
	s.document.Close()
	s.layers.Close()
}

// add takes a value of the document.
func (s *surfaceValues) add(set int, value []byte) error {
	s.counted[set]++
	if s.room[set].Take(len(value), verdict.MaxSurfaceValues) {
		s.first[set] = append(s.first[set], string(value))
	}
	return s.document.Add(set, value)
}

// expect takes a value of a layer; a negative set means that it belongs to none.
func (s *surfaceValues) expect(set int, value []byte) error { return s.layers.Add(set, value) }

// explain is the part of the surface that an explanation shows.
func (s *surfaceValues) explain() map[string][]string {
	sets := map[string][]string{}
	for i, name := range schemas.SurfaceSets {
		sets[name] = append([]string{}, s.first[i]...)
	}
	return sets
}

// surfaceDerived compares the surface with the union of the layers' values.
func (v *verifier) surfaceDerived() {
	if _, there := v.members[bundle.SurfaceName]; there {
		v.err = v.compareSurface()
	}
}

// compareSurface walks both in one pass: they are sorted. What follows a fault in
// the document is not known.
func (v *verifier) compareSurface() error {
	s := &v.surface
	set, value, err := s.document.Next()
	extra := func() {
		v.add(ruleSurfaceDerived, bundle.SurfaceName, 0, "%s has %.200q, which no layer has", schemas.SurfaceSets[set], value)
		set, value, err = s.document.Next()
	}
	eachErr := s.layers.Each(func(wantSet int, want []byte) error {
		for err == nil && (set < wantSet || set == wantSet && bytes.Compare(value, want) < 0) {
			extra()
		}
		switch {
		case err == nil && set == wantSet && bytes.Equal(value, want):
			set, value, err = s.document.Next()
		case err != nil && (err != io.EOF || !s.whole):
			return err
		default:
			v.add(ruleSurfaceDerived, bundle.SurfaceName, 0, "%s lacks %.200q, which a layer has", schemas.SurfaceSets[wantSet], want)
		}
		return nil
	})
	for eachErr == nil && err == nil {
		extra()
	}
	if eachErr == nil {
		eachErr = err
	}
	if eachErr == io.EOF {
		return nil
	}
	return eachErr
}
