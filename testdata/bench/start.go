//go:build linux

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// section is one part of the table.
type section struct {
	name   string
	kernel bool // needs a kernel that can be observed, which decides its numbers with its probes
	run    func(b *bench) error
}

var sections = []section{
	{"start", true, (*bench).start}, {"version", false, (*bench).versions}, {"open", true, (*bench).open}, {"many", true, (*bench).many},
	{"after", true, (*bench).afterwards}, {"outside", true, (*bench).outside}, {"scale", true, (*bench).scale}, {"spawn", true, (*bench).spawn},
	{"grep", true, (*bench).grep}, {"build", true, (*bench).build}, {"soak", true, (*bench).soak},
	{"stages", false, (*bench).stagesAlone}, {"verify", false, (*bench).verify}, {"readers", false, (*bench).readers}, {"attest", false, (*bench).attest},
	{"correlate", false, (*bench).correlate}, {"policy", false, (*bench).policy}, {"proc", false, (*bench).proc}, {"box", false, (*bench).box}, {"net", false, (*bench).network}, {"replay", true, (*bench).replay}, {"rss", false, (*bench).memory},
}

func (b *bench) known(name string) bool {
	return slices.ContainsFunc(sections, func(s section) bool { return s.name == name })
}

func (b *bench) wants(name string) bool {
	if b.only != nil {
		return slices.Contains(b.only, name)
	}
	return name != "rss" || b.rss
}

var (
	attachTime = regexp.MustCompile(`probes attached in ([0-9.a-zµ]+)`)
	readyTime  = regexp.MustCompile(`ready after ([0-9.a-zµ]+)`)
)

// start measures what runner-exec costs for a command that does nothing.
func (b *bench) start() error {
	var whole, cpu series
	var attach, ready []float64
	var bad []string
	var p, m sample
	runs := 0
	book := func() {
		if runs++; runs%2 == 0 {
			whole.add(p.wall, m.wall)
			cpu.add(p.cpu, m.cpu)
		}
	}
	err := interleave(b.n(15, 11), func() (err error) {
		p, err = b.plainTrue()
		book()
		return err
	}, func() (err error) {
		m, err = b.execute(nil, b.tool("runner-exec"), "-v", "--run-id", "bench", "--archive", b.archive(), "--", "/bin/true")
		if err != nil {
			return err
		}
		attach = appendDuration(attach, attachTime, m.err)
		ready = appendDuration(ready, readyTime, m.err)
		if rec, err := readRecord(b.archive(), func(uint32, []byte) {}); err != nil {
			return err
		} else if err := rec.whole(); err != nil {
			bad = append(bad, err.Error())
		}
		book()
		return nil
	})
	if err != nil {
		return err
	}
	d := median(whole.differences())
	l := limit{bound: 0.045, text: "<= 45ms"}
	ratio := fmt.Sprintf("%.0f", median(whole.ratios()))
	note := fmt.Sprintf("%s times a plain true; %d runs, ready after %s, %s CPU in all", ratio, len(attach), seconds(median(ready)), seconds(median(cpu.differences())))
	if len(bad) > 0 {
		note = bad[0]
	}
	b.table.add(row{what: rowTrue, plain: seconds(median(whole.plain)), measured: seconds(median(whole.measured)),
		ratio: "+" + seconds(d), spread: span(milli(whole.differences()), "%.0f") + "ms", target: l.text, verdict: l.verdict(d, len(bad) == 0), note: note, value: ratio, of: ofTrue, between: span(whole.ratios(), "%.0f")})
	a, l := median(attach), limit{bound: 0.080, text: "<= 80ms"}
	ratio = fmt.Sprintf("%.0f", a/median(whole.plain))
	b.table.add(row{what: rowAttach, measured: seconds(a), spread: span(milli(attach), "%.0f") + "ms",
		target: l.text, verdict: l.verdict(a, len(attach) > 0), note: ratio + " times a plain true, by runner-capture's own clock", value: ratio, of: ofTrue})
	if b.lines {
		return nil
	}
	return b.besideBusy()
}

// plainTrue runs true a few times and returns the run in the middle: what is so short differs much, and it is the unit of other rows.
func (b *bench) plainTrue() (sample, error) {
	var all []sample
	for range 5 {
		s, err := b.execute(nil, "/bin/true")
		if err != nil {
			return s, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b sample) int { return cmp.Compare(a.wall, b.wall) })
	return all[len(all)/2], nil
}

// ofTrue is the unit of what starting costs on another machine.
const ofTrue = "to the time of a plain true"

func milli(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = x * 1e3
	}
	return out
}

func appendDuration(v []float64, re *regexp.Regexp, text string) []float64 {
	if m := re.FindStringSubmatch(text); m != nil {
		if d, err := time.ParseDuration(m[1]); err == nil {
			return append(v, d.Seconds())
		}
	}
	return v
}
