//go:build linux

package main

import (
	"fmt"
	"regexp"
	"time"
)

// section is one part of the table.
type section struct {
	name   string
	kernel bool // needs a kernel that can be observed
	run    func(b *bench) error
}

var sections = []section{
	{"start", true, (*bench).start}, {"version", false, (*bench).versions}, {"open", true, (*bench).open}, {"many", true, (*bench).many},
	{"after", true, (*bench).afterwards}, {"outside", true, (*bench).outside}, {"scale", true, (*bench).scale}, {"spawn", true, (*bench).spawn},
	{"grep", true, (*bench).grep}, {"build", true, (*bench).build}, {"soak", true, (*bench).soak},
	{"stages", false, (*bench).stagesAlone}, {"verify", false, (*bench).verify}, {"readers", false, (*bench).readers}, {"attest", false, (*bench).attest},
	{"correlate", false, (*bench).correlate}, {"policy", false, (*bench).policy}, {"proc", false, (*bench).proc}, {"box", false, (*bench).box}, {"net", false, (*bench).network}, {"replay", true, (*bench).replay}, {"rss", false, (*bench).memory},
	{"cost", true, (*bench).cost},
}

func (b *bench) known(name string) bool {
	for _, s := range sections {
		if s.name == name {
			return true
		}
	}
	return name == ""
}

func (b *bench) wants(name string) bool {
	if b.only != "" {
		return b.only == name
	}
	return name != "cost" && (name != "rss" || b.rss)
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
		p, err = b.execute(nil, "/bin/true")
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
	note := fmt.Sprintf("%d runs, ready after %s, %s CPU in all", len(attach), seconds(median(ready)), seconds(median(cpu.differences())))
	if len(bad) > 0 {
		note = bad[0]
	}
	b.table.add(row{what: "runner-exec -- true, added", plain: seconds(median(whole.plain)), measured: seconds(median(whole.measured)),
		ratio: "+" + seconds(d), spread: span(milli(whole.differences()), "%.0f") + "ms", target: l.text, verdict: l.verdict(d, len(bad) == 0), note: note})
	a, l := median(attach), limit{bound: 0.080, text: "<= 80ms"}
	b.table.add(row{what: "  of it: attach", measured: seconds(a), spread: span(milli(attach), "%.0f") + "ms",
		target: l.text, verdict: l.verdict(a, len(attach) > 0), note: "by runner-capture's own clock"})
	return b.besideBusy()
}

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
