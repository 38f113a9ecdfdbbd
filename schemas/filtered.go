package schemas

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The layer filtered is optional: it holds what runner-normalize left out of the kernel layer as noise,
// as the set of distinct values of each rule. How often something was left out is not in it: that
// differs from run to run.

// Bounds of the layer: values of one rule, and bytes of them. What is above is counted in the note.
const (
	MaxFilteredValues = 1 << 14
	MaxFilteredBytes  = 2 << 20
	MaxFilteredLayer  = 256 << 20
	MaxFilteredValue  = 64 << 10 // no value is longer: two paths joined, each byte an escape of four
)

// Tables of noise rules, as --noise names them.
const (
	NoiseV0     = "v0"     // the rules of the v0 contracts
	NoiseLoader = "loader" // the same, but what lies in folders of packages stays
	NoiseNone   = "none"   // nothing is noise
)

// NoiseTables are all tables of noise rules.
var NoiseTables = [...]string{NoiseV0, NoiseLoader, NoiseNone}

// FilteredEvent is one line of layers/filtered.ndjson: a value that a rule left out.
type FilteredEvent struct {
	Schema string `json:"schema"`
	RunID  string `json:"run_id"`
	Seq    uint64 `json:"seq"`
	Rule   string `json:"rule"`
	Value  string `json:"value"`
}

// AppendJSON appends the line's canonical form, without LF.
func (f *FilteredEvent) AppendJSON(dst []byte) []byte {
	dst = append(append(dst, `{"schema":"`+SchemaFiltered+`","run_id":"`...), f.RunID...)
	dst = strconv.AppendUint(append(dst, `","seq":`...), f.Seq, 10)
	dst = AppendQuote(append(dst, `,"rule":`...), []byte(f.Rule))
	dst = AppendQuote(append(dst, `,"value":`...), []byte(f.Value))
	return append(dst, '}')
}

// After reports whether the line comes after another in the order of the layer: by rule,
// then by value, both by bytes.
func (f *FilteredEvent) After(rule, value string) bool {
	return f.Rule > rule || f.Rule == rule && f.Value > value
}

// ParseFiltered parses one line of layers/filtered.ndjson.
func ParseFiltered(line []byte) (*FilteredEvent, error) {
	f := new(FilteredEvent)
	err := decode(line, f)
	if err == nil {
		err = first(head(f.Schema, SchemaFiltered, f.RunID), filterID(f.Rule), notEmpty("value", f.Value))
	}
	if err != nil {
		return nil, fmt.Errorf("filtered: %w", err)
	}
	return f, nil
}

// filterID checks the form of a rule's id. runner-verify knows which rules there are.
func filterID(id string) error {
	words := strings.Split(id, ".")
	for _, w := range words {
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return fmt.Errorf("rule is %.100q, expected lower-case words joined by a dot", id)
		}
	}
	if len(words) < 2 {
		return errors.New("rule has no dot")
	}
	return nil
}
