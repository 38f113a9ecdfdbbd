package schemas_test

import (
	"strconv"

	"github.com/runner-evidence/runner/schemas"
)

func signals() table {
	t := table{{"signal", "is", "where", "captured if", "weight"}}
	for _, s := range schemas.Signals {
		at := ""
		if s.At != "" {
			at = code(s.At)
		}
		t = append(t, []string{code(s.Name), s.What, at, s.When, strconv.FormatUint(s.Weight, 10)})
	}
	return t
}

func dependencies() table {
	t := table{{"kind", "what was seen"}}
	for _, d := range schemas.Dependencies {
		t = append(t, []string{code(d.Name), d.What})
	}
	return t
}
