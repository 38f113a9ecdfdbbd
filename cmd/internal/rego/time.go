package rego

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the zones, for machines without

	"github.com/runner-evidence/runner/schemas/pattern"
)

var timeBuiltins = []builtin{
	{nowName, nil, func(c *call, _ []any) (any, error) { return nanoseconds(c.policy.options.Now) }},
	{"time.parse_ns", []kind{str, str}, func(_ *call, a []any) (any, error) { return parseTime(layoutOf(a[0].(string)), a[1].(string)) }},
	{"time.parse_rfc3339_ns", []kind{str}, func(_ *call, a []any) (any, error) { return parseTime(time.RFC3339, a[0].(string)) }},
	{"time.parse_duration_ns", []kind{str}, func(_ *call, a []any) (any, error) { return parseDuration(a[0].(string)) }},
	{"time.format", []kind{anything}, ofTime(func(t time.Time, layout string) any { return t.Format(layout) })},
	{"time.weekday", []kind{anything}, ofTime(func(t time.Time, _ string) any { return t.Weekday().String() })},
	{"time.clock", []kind{anything}, ofTime(func(t time.Time, _ string) any { return numbers(t.Clock()) })},
	{"time.date", []kind{anything}, ofTime(func(t time.Time, _ string) any {
		year, month, day := t.Date()
		return numbers(year, int(month), day)
	})},
	{"time.add_date", []kind{anything, num, num, num}, addDate},
	{"time.diff", []kind{anything, anything}, difference},
}

func numbers(list ...int) []any {
	all := make([]any, len(list))
	for i, n := range list {
		all[i] = number(int64(n))
	}
	return all
}

// layouts are the names that OPA has for layouts of Go.
var layouts = map[string]string{
	"ANSIC": time.ANSIC, "UnixDate": time.UnixDate, "RubyDate": time.RubyDate, "RFC822": time.RFC822, "RFC822Z": time.RFC822Z,
	"RFC850": time.RFC850, "RFC1123": time.RFC1123, "RFC1123Z": time.RFC1123Z, "RFC3339": time.RFC3339, "RFC3339Nano": time.RFC3339Nano,
}

func layoutOf(name string) string {
	if layout, is := layouts[name]; is {
		return layout
	}
	return name
}

// nanoseconds are those since 1970, for the times that 64 bits have.
func nanoseconds(t time.Time) (any, error) {
	if t.Before(time.Unix(0, math.MinInt64)) || t.After(time.Unix(0, math.MaxInt64)) {
		return nil, errors.New("beyond 64 bits")
	}
	return number(t.UnixNano()), nil
}

// parseTime reads a time. The zone of the machine plays no part: one that is only a name has the offset 0.
func parseTime(layout, s string) (any, error) {
	t, err := time.ParseInLocation(layout, s, time.UTC)
	if err != nil {
		return nil, err
	}
	return nanoseconds(t)
}

// longDuration has units of days, weeks and years besides Go's.
var (
	longDuration = pattern.New(`^([-+]?)((?:[0-9.]+(?:ms|us|µs|ns|[a-z]))+)$`)
	durationPart = pattern.New(`([0-9.]+)(ms|us|µs|ns|[a-z])`)
	hoursOf      = map[string]float64{"d": 24, "w": 7 * 24, "y": 365 * 24}
)

func parseDuration(s string) (any, error) {
	if strings.ContainsAny(s, "dwy") {
		parts := longDuration.FindStringSubmatch(s)
		if parts == nil {
			return nil, errors.New("no duration")
		}
		s = parts[1]
		for _, part := range durationPart.Regexp().FindAllStringSubmatch(parts[2], -1) {
			hours, long := hoursOf[part[2]]
			if !long {
				s += part[0]
				continue
			}
			n, err := strconv.ParseFloat(part[1], 64)
			if err != nil {
				return nil, err
			}
			s += strconv.FormatFloat(n*hours, 'f', -1, 64) + "h"
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return nil, err
	}
	return number(int64(d)), nil
}

// ofTime makes a builtin of a function of a time.
func ofTime(f func(t time.Time, layout string) any) func(*call, []any) (any, error) {
	return func(c *call, a []any) (any, error) {
		t, layout, err := c.time(a[0])
		if err != nil {
			return nil, err
		}
		return f(t, layout), nil
	}
}

// time reads nanoseconds, or an array of nanoseconds, a zone and a layout.
func (c *call) time(v any) (t time.Time, layout string, err error) {
	layout, zone := time.RFC3339Nano, ""
	if list, is := v.([]any); is {
		if len(list) == 0 {
			return t, "", errType
		}
		for i, text := range []*string{&zone, &layout} {
			if i+1 >= len(list) {
				break
			}
			s, is := list[i+1].(string)
			if !is {
				return t, "", errType
			}
			if *text = s; text == &layout {
				if *text = layoutOf(s); s == "" {
					layout = time.RFC3339Nano
				}
			}
		}
		v = list[0]
	}
	n, is := v.(json.Number)
	if !is {
		return t, "", errType
	}
	ns, is := whole(n)
	if !is || !ns.IsInt64() {
		return t, "", errors.New("no nanoseconds")
	}
	if zone == "Local" {
		return t, "", faultf("%s: the zone Local is another one on each machine", c.name)
	}
	place, err := time.LoadLocation(zone)
	if err != nil {
		return t, "", err
	}
	return time.Unix(0, ns.Int64()).In(place), layout, nil
}

func addDate(c *call, a []any) (any, error) {
	t, _, err := c.time(a[0])
	if err != nil {
		return nil, err
	}
	var n [3]int
	for i := range n {
		if n[i], err = integer(a[i+1]); err != nil {
			return nil, err
		}
	}
	return nanoseconds(t.AddDate(n[0], n[1], n[2]))
}

// difference is what is between two times in years, months, days, hours, minutes and seconds of the first
// one's zone. What is negative takes from the next larger one; a day takes from the days of the month of
// the earlier time.
func difference(c *call, a []any) (any, error) {
	from, _, err := c.time(a[0])
	if err != nil {
		return nil, err
	}
	to, _, err := c.time(a[1])
	if err != nil {
		return nil, err
	}
	if to = to.In(from.Location()); from.After(to) {
		from, to = to, from
	}
	fields := func(t time.Time) [6]int {
		return [6]int{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second()}
	}
	early, d := fields(from), fields(to)
	monthDays := time.Date(from.Year(), from.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
	sizes := [6]int{0, 12, monthDays, 24, 60, 60}
	for i := 5; i >= 0; i-- {
		if d[i] -= early[i]; d[i] < 0 && i > 0 {
			d[i] += sizes[i]
			d[i-1]--
		}
	}
	return numbers(d[:]...), nil
}
