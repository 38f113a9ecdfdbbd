//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

var loadChecks = []check{
	{"opens-4", true, opensByFour},
	{"opens-16", false, opensBySixteen},
	{"execs", true, execsAtOnce},
	{"moves", false, movesAtOnce},
	{"silence", true, silence},
	{"kinds-repeated", false, kindsRepeated},
}

// balance is made = recorded + dropped + reported as missed, for one kind of event.
type balance struct {
	what     string
	made     int
	recorded int
	dropped  uint64 // for want of room in the ring
}

// judge is nil if everything was recorded and the record is complete, told if what is not
// recorded is reported, and another error otherwise. Reported misses are of programs, and
// a program may miss events of others too: so they may be more than what the record lacks.
func (r *record) judge(all ...balance) (string, error) {
	var said []string
	missed := int(r.health.Counters[schemas.CounterRecursionMisses])
	if lost, err := schemas.ParseRedundant(r.health.Facts[schemas.FactRedundant]); err == nil {
		missed += int(lost)
	}
	lost, known := 0, true
	for _, b := range all {
		said = append(said, fmt.Sprintf("%s: %d made, %d recorded, %d dropped", b.what, b.made, b.recorded, b.dropped))
		gone := b.made - b.recorded - int(b.dropped)
		lost += gone
		known = known && gone >= 0
	}
	detail := strings.Join(said, "; ") + fmt.Sprintf("; %d reported as missed%s", missed, r.missed())
	complete, dropped := r.status == schemas.StatusComplete, r.health.Counters[schemas.CounterDropped]
	switch {
	case !known:
		return "", fmt.Errorf("more is recorded than was made: %s", detail)
	case lost > missed:
		return "", fmt.Errorf("%d events are gone and only %d reported: %s", lost, missed, detail)
	case complete && (lost > 0 || missed > 0 || dropped > 0):
		return "", fmt.Errorf("the record claims to be complete: %s", detail)
	case complete:
		return detail, nil
	case lost == 0 && missed == 0 && dropped == 0:
		return "", fmt.Errorf("nothing is lost, and the record is partial: %s: %v %v", detail, r.health.Counters, r.health.Facts)
	}
	return "", told(detail)
}

// missed is the part of each probe.
func (r *record) missed() (by string) {
	for _, name := range slices.Sorted(maps.Keys(r.health.Counters)) {
		if probe, ok := strings.CutPrefix(name, schemas.CounterMissed); ok {
			by += fmt.Sprintf(" %s=%d", probe, r.health.Counters[name])
		}
	}
	return by
}

func (r *record) droppedOf(op string) uint64 {
	return r.health.Counters[schemas.CounterDroppedByOp+op]
}

// shape runs a shape under load, and counts the raw events with a mark.
func (m *machine) shape(mark, name, dir string, numbers ...int) (*record, error) {
	if err := needCapture(m); err != nil {
		return nil, err
	}
	args := []string{m.tool("shapes"), name, dir}
	for _, n := range numbers {
		args = append(args, strconv.Itoa(n))
	}
	return m.outline(mark, nil, args...)
}

func opensBy(m *machine, each, processes int) (string, error) {
	dir := m.dir()
	r, err := m.shape(dir+"/M-hammer-", "hammer", dir, each, processes)
	if err != nil {
		return "", err
	}
	return r.judge(balance{"opens", each * processes, r.marked[schemas.OpOpenat2], r.droppedOf(schemas.OpOpenat2)})
}

func opensBySixteen(m *machine) (string, error) { return opensBy(m, m.pick(625, 2_500), 16) }

const (
	workers = 8
	openers = 4
)

// contended is a run in which processes open files at once, and then execute programs.
type contended struct {
	*record
	opens, execs int
}

func (m *machine) contended() (*contended, error) {
	m.contendedOnce.Do(func() {
		dir, c := m.dir(), &contended{opens: m.pick(1_250, 20_000), execs: m.pick(320, 2_000)}
		m.contendedRun = c
		if m.contendedErr = needCapture(m); m.contendedErr != nil {
			return
		}
		hammer := []string{m.tool("shapes"), "hammer", dir, strconv.Itoa(c.opens), strconv.Itoa(openers)}
		execs := []string{m.tool("shapes"), "execs", dir, strconv.Itoa(c.execs), strconv.Itoa(workers)}
		argv := slices.Concat([]string{m.tool("check"), eachStage}, hammer, []string{"--"}, execs)
		c.record, m.contendedErr = m.outline(dir+"/M-", nil, argv...)
	})
	return m.contendedRun, m.contendedErr
}

func opensByFour(m *machine) (string, error) {
	c, err := m.contended()
	if err != nil {
		return "", err
	}
	return c.judge(balance{"opens", c.opens * openers, c.marked[schemas.OpOpenat2], c.droppedOf(schemas.OpOpenat2)})
}

// execsAtOnce: the tasks are those that execute, the openers, and what started both.
func execsAtOnce(m *machine) (string, error) {
	c, err := m.contended()
	if err != nil {
		return "", err
	}
	tasks := c.execs + workers + openers + 2
	return c.judge(
		balance{"forks", tasks, c.tree[schemas.OpFork], c.droppedOf(schemas.OpFork)},
		balance{"exits", tasks + 1, c.tree[schemas.OpExit], c.droppedOf(schemas.OpExit)},
		balance{"execs", c.execs, c.marked[schemas.OpExec], c.droppedOf(schemas.OpExec)})
}

// movesAtOnce: processes leave the cgroup. The record counts each and claims nothing.
func movesAtOnce(m *machine) (string, error) {
	const n = 64
	if err := needCapture(m); err != nil {
		return "", err
	}
	r, err := m.outline("", nil, m.tool("shapes"), "moves", m.dir(), strconv.Itoa(n))
	if err != nil {
		return "", err
	}
	escapes := r.health.Counters[schemas.CounterEscapes]
	detail := fmt.Sprintf("%d processes left, %d escapes counted", n, escapes)
	if r.complete() == nil || escapes < n {
		return "", fmt.Errorf("%s: %s", detail, r.status)
	}
	return detail, nil
}

// silence: a busy program outside of the cgroup must not make ordinary runs doubtful.
func silence(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	stop, err := m.busy()
	if err != nil {
		return "", err
	}
	defer stop()
	runs, complete, why := m.pick(2, 10), 0, ""
	for range runs {
		r, err := m.outline("", nil, m.tool("shapes"), "_nop")
		if err != nil {
			return "", err
		}
		if r.status != schemas.StatusComplete {
			why = fmt.Sprint(r.health.Counters)
			continue
		}
		complete++
	}
	detail := fmt.Sprintf("%d of %d ordinary runs are complete next to a busy program", complete, runs)
	if complete < runs {
		return "", told(detail + ": " + why)
	}
	return detail, nil
}

// busy starts programs outside of every run that open, connect and use io_uring, and
// execute, without a pause.
func (m *machine) busy() (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	for _, name := range []string{"opens,rings", "execs"} {
		c := m.command("check", "_again", m.tool("shapes"), name, m.dir(), "1000", "1")
		if err := c.Start(); err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, func() {
			c.Process.Kill()
			c.Wait()
		})
	}
	return stop, nil
}
