//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/runner-evidence/runner/testdata/bench/emulated"
	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// toolsCheck is the line that says which tools were measured.
const toolsCheck = "tools"

// writeTools begins the lines of a guest of the lane.
func (b *bench) writeTools(w io.Writer) error {
	version, err := b.version()
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(guest.Line{Check: toolsCheck, Result: guest.OK, Detail: version})
}

// writeLines prints rows as results of a guest of the lane: those that have something to record, and those that should have. A record that
// is not complete is cheap, so its row has none.
func writeLines(w io.Writer, rows []row) error {
	out := json.NewEncoder(w)
	for _, r := range rows {
		l := guest.Line{Check: strings.TrimSpace(r.what), Result: guest.Failed, Detail: strings.TrimSpace(r.verdict + " " + r.note)}
		if !r.broken() {
			if r.value == "" {
				continue
			}
			c := emulated.Row{What: r.what, Value: r.value, Of: r.of, Spread: r.between}
			l.Result, l.Detail, l.Cost = guest.OK, fmt.Sprintf("%s %s", c.Value, c.Of), &c
		}
		if err := out.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
