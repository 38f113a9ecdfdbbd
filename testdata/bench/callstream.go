package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/runner-evidence/runner/schemas"
)

// calls is a session of an agent: a policy proxy, its tool server, and tool calls
// in sequence. In each call, workers of the server make the same number of events.
type calls struct {
	n, each int    // calls, and events in each
	fresh   int    // so many of ten opens name a new file
	hex     string // of the session
}

// The times of a call: one starts in every period, with a step between its events.
const (
	callsBegin = 4_473_330_889_664
	callStep   = 1_000
	callGap    = 50_000
)

// Processes: the agent, the proxy, the server, and its workers.
const (
	agentPID   = 17_404
	proxyPID   = 17_405
	serverPID  = 17_406
	workerPID  = 17_407
	workers    = 8
	forksFirst = 2 + workers
)

func (c *calls) period() uint64      { return uint64(c.each)*callStep + callGap }
func (c *calls) start(k int) uint64  { return callsBegin + uint64(k)*c.period() }
func (c *calls) end(k int) uint64    { return c.start(k) + uint64(c.each)*callStep }
func (c *calls) events() int         { return c.n * c.each }
func (c *calls) target(k int) string { return fmt.Sprintf("/home/user/src/project/module_%d", k%13) }
func (c *calls) id(k int) string     { return fmt.Sprintf("call_%06d", k) }
func (c *calls) write(p string) error {
	return rawEvents(p, c.events(), schemas.ChecksumSHA256, c.event)
}

// event is event i: the first ones make the processes, all others are opens.
func (c *calls) event(i int) schemas.RawEvent {
	k, j := i/c.each, i%c.each
	e := schemas.RawEvent{Seq: uint64(i), KtimeNS: c.start(k) + uint64(j)*callStep, CgroupID: 14655,
		PID: agentPID, CPU: uint32(i % 2), CPUSeq: uint64(i / 2)}
	if i < forksFirst {
		// The proxy and its server start before the session.
		e.KtimeNS = callsBegin - 2_000_000 + uint64(i)
		e.Op, e.Has, e.PID = "fork", schemas.HasChild, [...]uint32{agentPID, proxyPID, serverPID}[min(i, 2)]
		e.TID = e.PID
		e.ChildPID = proxyPID + uint32(i)
		e.ChildTID = e.ChildPID
		return e
	}
	e.PID = workerPID + uint32(i/7%workers)
	e.TID = e.PID
	e.Op, e.Has, e.Flags, e.Ret = "openat", schemas.HasRet|schemas.HasFlags|schemas.HasMode, 0o2000000, 3+int64(i%5)
	root := c.target(k)
	// A hash spreads the names, so that order and repetition do not help a cache.
	h := uint64(i) * 0x9e3779b97f4a7c15 >> 20
	switch kind := i % 10; {
	case kind < c.fresh:
		e.Flags, e.Mode = 0o2001102, 0o666
		e.Path = fmt.Appendf(nil, "%s/cache/%02x/%010x%08d-d", root, h%256, h, i)
	case kind == 9:
		e.Ret = -2
		e.UserPath = fmt.Appendf(nil, "vendor/missing_%d.go", h%997)
		e.Base = []byte(root)
	case kind >= 7:
		e.Path = fmt.Appendf(nil, "/usr/include/sys/header_%d.h", h%10)
	default:
		e.Path = fmt.Appendf(nil, "%s/internal/package_%d/source_file_%d.go", root, h%5000%97, h%5000)
	}
	return e
}

// writeLog writes the session's decision log.
func (c *calls) writeLog(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	seq := uint64(0)
	put := func(kind string, data any) {
		line, e := schemas.Marshal(schemas.LogEntry[any]{SpecVersion: "1.0", ID: fmt.Sprintf("%s-%d", c.hex, seq), Type: kind, Source: schemas.LogSource, Data: data})
		if err == nil {
			err = e
		}
		w.Write(append(line, '\n'))
		seq++
	}
	head := func() schemas.LogHead { return schemas.LogHead{Session: c.hex, Seq: seq} }
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	put(schemas.LogSessionStarted, schemas.SessionStarted{LogHead: head(), KtimeNS: callsBegin - 1_000_000, Name: "files",
		PolicyDigest: digest, ProxyPID: proxyPID, ServerPID: serverPID})
	for k := range c.n {
		put(schemas.LogDecision, schemas.ToolDecision{LogHead: head(), Call: uint64(k), Attempt: 1, Tool: "build", Decision: schemas.DecisionAllow,
			ReasonCode: "P_ALLOW_RULE", RuleID: "build", ToolCallID: c.id(k), ToolCallIDSource: "callId", PolicyDigest: digest,
			StartNS: c.start(k), Targets: []string{c.target(k), "/usr/include"}})
		put(schemas.LogCallFinished, schemas.CallFinished{LogHead: head(), Call: uint64(k), ToolCallID: c.id(k), StartNS: c.start(k), EndNS: c.end(k), Outcome: schemas.OutcomeCompleted})
	}
	zero := 0
	put(schemas.LogSessionFinished, schemas.SessionFinished{LogHead: head(), KtimeNS: c.end(c.n), Decisions: uint64(c.n), Finished: uint64(c.n), ServerExit: &zero})
	return errors.Join(err, w.Flush(), f.Close())
}
