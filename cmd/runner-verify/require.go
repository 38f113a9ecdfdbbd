package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// requirement is one demand on a valid record.
type requirement struct{ key, value string }

func (r requirement) String() string {
	d, _ := lookupDemand(r.key)
	return r.key + d.sign() + r.value
}

// demand is one key of --require: its values, or a pattern and what it means.
type demand struct {
	key     string
	values  []string
	pattern *pattern.Pattern
	form    string
	above   bool // KEY>N: the record has more
	is      func(r *verdict.Report) string
	holds   func(value, is string) bool // nil: the record has that value
}

var demands = []demand{
	{key: "origin", values: schemas.Origins[:], is: func(r *verdict.Report) string { return r.Record.Origin }},
	{key: "kernel", values: []string{schemas.LayerComplete, schemas.LayerPartial, schemas.LayerAbsent}, is: func(r *verdict.Report) string { return r.Record.KernelLayer }},
	{key: "drops", pattern: pattern.New(`^(0|[1-9][0-9]{0,18})$`), form: "N (at most that many)", is: func(r *verdict.Report) string { return strconv.FormatUint(r.Record.RingbufDrops, 10) }},
	{key: "events", above: true, pattern: pattern.New(`^(0|[1-9][0-9]{0,18})$`), form: "N", is: func(r *verdict.Report) string { return strconv.FormatUint(r.Record.KernelEvents, 10) }},
	{key: "cgroup", values: []string{schemas.CorrelationClean, schemas.CorrelationPartial}, is: func(r *verdict.Report) string { return r.Record.CgroupCorrelation }},
	{key: "correlation", values: []string{schemas.CorrelationClean, schemas.CorrelationPartial, schemas.CorrelationFailed}, is: func(r *verdict.Report) string { return r.Record.Correlation }},
	toolPolicyDemand(),
	{key: "sdk", values: []string{schemas.LayerSelfReported, schemas.LayerAbsent}, is: func(r *verdict.Report) string { return r.Record.SDKLayer }},
	{key: "network", values: []string{schemas.CoverageAbsent, schemas.CoverageConnect, schemas.CoverageDatagram, schemas.CoverageBoth, schemas.CoverageUnknown}, is: func(r *verdict.Report) string { return r.Record.NetworkCoverage }},
	policyDemand(schemas.EnforcedNetwork),
	policyDemand(schemas.EnforcedFiles),
	{key: "success", values: []string{"true", "false"}, is: func(r *verdict.Report) string { return strconv.FormatBool(r.Record.Success) }},
	{key: "run_id", pattern: pattern.New(`^[A-Za-z0-9_-]+$`), form: "ID", is: func(r *verdict.Report) string { return r.RunID }},
	{key: "identity", pattern: pattern.New(`^sha256:[0-9a-f]{64}$`), form: "sha256:HEX", is: func(r *verdict.Report) string { return r.Identity }},
	{key: "identity_without_times", pattern: pattern.New(`^sha256:[0-9a-f]{64}$`), form: "sha256:HEX", is: withoutTimes},
}

// withoutTimes is the identity without times: of an archive that has none, its identity.
func withoutTimes(r *verdict.Report) string {
	if r.IdentityWithoutTimes != "" {
		return r.IdentityWithoutTimes
	}
	return r.Identity
}

// sign is what is between the key and the value.
func (d demand) sign() string {
	if d.above {
		return ">"
	}
	return "="
}

func (d demand) allowed() string {
	if d.form != "" {
		return d.key + d.sign() + d.form
	}
	return d.key + "=" + strings.Join(d.values, "|")
}

func (d demand) takes(value string) bool {
	for _, v := range d.values {
		if v == value {
			return true
		}
	}
	return d.pattern != nil && d.pattern.MatchString(value)
}

// parseRequirements reads the comma lists of every --require.
func parseRequirements(lists []string) ([]requirement, error) {
	var out []requirement
	seen := map[string]string{}
	for _, list := range lists {
		for item := range strings.SplitSeq(list, ",") {
			key, value := item, ""
			at := strings.IndexAny(item, "=>")
			if at >= 0 {
				key, value = item[:at], item[at+1:]
			}
			d, ok := lookupDemand(key)
			if !ok {
				return nil, unknownDemand(item, key)
			}
			if at < 0 || !d.takes(value) || item[at:at+1] != d.sign() {
				return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--require %q: unknown value %q", item, value), "allowed is: "+d.allowed())
			}
			if old, twice := seen[key]; twice && old != value {
				return nil, tool.Usagef("--require %s=%s and %s=%s exclude each other", key, old, key, value)
			} else if twice {
				continue
			}
			seen[key] = value
			out = append(out, requirement{key, value})
		}
	}
	return out, nil
}

// unknownDemand is the error for a key that there is not.
func unknownDemand(item, key string) error {
	var all, keys []string
	for _, d := range demands {
		all, keys = append(all, d.allowed()), append(keys, d.key)
	}
	near := ""
	if k := nearest.Word(key, keys); k != "" {
		near = "did you mean " + k + "? "
	}
	return tool.Fail(tool.ExitUsage, fmt.Errorf("--require %q: unknown key %q", item, key), near+"Known are: "+strings.Join(all, " "))
}

func lookupDemand(key string) (demand, bool) {
	for _, d := range demands {
		if d.key == key {
			return d, true
		}
	}
	return demand{}, false
}

// met reports whether the record is as demanded, and what it is instead.
func (r requirement) met(res *verdict.Report) (bool, string) {
	d, _ := lookupDemand(r.key)
	is := d.is(res)
	if d.holds != nil {
		return d.holds(r.value, is), is
	}
	if r.key == "drops" {
		return res.Record.RingbufDrops <= mustUint(r.value), is
	}
	if d.above {
		return mustUint(is) > mustUint(r.value), is
	}
	return is == r.value, is
}

// mustUint converts what the pattern has already checked.
func mustUint(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
