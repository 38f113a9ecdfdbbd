package main

import (
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// effectSet holds what the report says that kernel lines say, and finds it in the
// kernel layer. The report stands in front of the layer and its effects are few,
// so memory does not grow with the lines.
type effectSet struct {
	seen  map[string]bool // named in the report → some line says it
	bytes int             // of all effects of the report
	buf   []byte
}

// expect takes the effects of the report's bindings, and the programs that it
// says were executed without a tool call.
func (s *effectSet) expect(r *schemas.Report) {
	s.seen = map[string]bool{}
	if r == nil {
		return
	}
	for i := range r.Bindings {
		for _, e := range r.Bindings[i].KernelEffects {
			s.bytes += len(e)
			s.seen[e] = false
		}
	}
	for _, code := range r.Ambiguities {
		if path, ok := strings.CutPrefix(code, schemas.AmbiguityExecWithoutCall+":"); ok && path != schemas.ExecWithoutCallMore {
			s.seen["exec "+path] = false
		}
	}
}

// see takes one kernel line.
func (s *effectSet) see(e *schemas.KernelEvent) {
	if len(s.seen) == 0 {
		return
	}
	s.buf = schemas.AppendEffect(s.buf[:0], e)
	if found, named := s.seen[string(s.buf)]; named && !found {
		s.seen[string(s.buf)] = true
	}
}

// done reports whether an effect says that something was done, and not that it
// failed or was refused.
func done(effect string) bool {
	verb, _, _ := strings.Cut(effect, " ")
	return !strings.HasPrefix(verb, schemas.EffectFailed) && !strings.HasSuffix(verb, "_blocked")
}
