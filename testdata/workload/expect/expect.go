// Package expect has the kernel lines that a workload says it made, and compares them with
// those of a record. The tests of the tools and the checks inside of other kernels use it.
package expect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Event is one expected kernel line, with the number of equal ones. A workload prints it.
type Event struct {
	Op      string  `json:"op"`         // the call that was made
	Type    int     `json:"event_type"` // id of the expected line
	Value   *string `json:"value"`      // its value; null for a line without one
	Any     bool    `json:"any,omitempty"`
	Suffix  bool    `json:"suffix,omitempty"` // only the end of value is known
	Ret     *int64  `json:"ret,omitempty"`    // absent: not checked
	Pid     int     `json:"pid,omitempty"`    // 0: not checked
	Flags   *uint64 `json:"flags,omitempty"`
	Mode    *uint64 `json:"mode,omitempty"`
	Resolve *uint64 `json:"resolve,omitempty"`
	Rule    *uint32 `json:"rule_id,omitempty"`
	Count   int     `json:"count"`
}

// Skip is printed instead of events that this machine cannot make.
type Skip struct {
	Op   string `json:"op"` // always OpSkip
	What string `json:"what"`
	Why  string `json:"why"`
}

// OpSkip marks a Skip.
const OpSkip = "skip"

// Line is a kernel line of a record.
type Line struct {
	Seq     uint64  `json:"seq"`
	Pid     int     `json:"pid"`
	Type    int     `json:"event_type"`
	Kind    string  `json:"kind"`
	Value   *string `json:"value"`
	Flags   *uint64 `json:"flags"`
	Mode    *uint64 `json:"mode"`
	Resolve uint64  `json:"resolve"`
	Ret     *int64  `json:"return_value"`
	Status  string  `json:"status"`
	Rule    *uint32 `json:"rule_id"`
	Doubt   string  `json:"doubt,omitempty"`
}

func (e Event) String() string { return text(e) }
func (l Line) String() string  { return text(l) }

func text(v any) string {
	b, _ := json.Marshal(v)
	if len(b) > 600 {
		b = append(b[:600], "…"...)
	}
	return string(b)
}

// Exec is the line of a program that was executed.
func Exec(program string) Event {
	return Event{Op: "the command itself", Type: 4, Value: &program, Count: 1}
}

// Parse reads what a workload printed.
func Parse(stdout string) (made []Event, skips []Skip, err error) {
	for l := range strings.Lines(stdout) {
		var e struct {
			Event
			What string `json:"what"`
			Why  string `json:"why"`
		}
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			return nil, nil, fmt.Errorf("%w in %.300s", err, l)
		}
		if e.Op == OpSkip {
			skips = append(skips, Skip{e.Op, e.What, e.Why})
			continue
		}
		made = append(made, e.Event)
	}
	if len(made)+len(skips) == 0 {
		return nil, nil, errors.New("the workload printed nothing")
	}
	return made, skips, nil
}

func (e Event) matches(l Line) bool {
	switch {
	case e.Pid != 0 && l.Pid != e.Pid, e.Ret != nil && (l.Ret == nil || *l.Ret != *e.Ret):
		return false
	case e.Flags != nil && (l.Flags == nil || *l.Flags != *e.Flags):
		return false
	case e.Mode != nil && (l.Mode == nil || *l.Mode != *e.Mode):
		return false
	case e.Resolve != nil && l.Resolve != *e.Resolve:
		return false
	case e.Rule != nil && (l.Rule == nil || *l.Rule != *e.Rule):
		return false
	case e.Any:
		return true
	case e.Value == nil || l.Value == nil:
		return e.Value == nil && l.Value == nil
	case e.Suffix:
		return strings.HasSuffix(*l.Value, *e.Value)
	}
	return *l.Value == *e.Value
}
