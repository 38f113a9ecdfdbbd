package main

import (
	"cmp"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// request is a request of the client that is no tool call.
type request struct {
	method     string // in text form
	start, end uint64
	denied     bool
	ofClient   bool
	targets    []uint32
	hosts      []uint32
}

// busy is a time in which requests ran. It includes its start and its end.
type busy struct {
	start, end uint64
	requests   []*request
}

// maxRequestsTogether is how many requests are compared with what happens at one time. What the
// others name is not known, so an effect may seem to be on nothing that was named.
const maxRequestsTogether = 64

// requested takes in a request. What a server asks of its client gives the server nothing
// to do.
func (p *policyLog) requested(s *session, d *schemas.RequestDecision) string {
	at := callKey{s, d.Request, d.StartNS}
	denied := d.Decision == schemas.DecisionDeny
	switch {
	case denied && d.EndNS < d.StartNS:
		return schemas.WhyField
	case p.requests[at] != nil:
		return schemas.WhyConflict
	}
	var named decision
	for _, target := range d.Targets {
		p.index.name(&named, target)
	}
	slices.Sort(named.targets)
	r := &request{method: p.intern(schemas.Text(d.Method)), start: d.StartNS, end: d.EndNS, denied: denied, ofClient: d.Direction == schemas.FromClient, targets: named.targets, hosts: named.hosts}
	if !denied {
		p.requests[at] = r
	}
	if r.ofClient && denied {
		s.requests = append(s.requests, r)
	}
	return ""
}

// requestEnded takes in the end of a request. One without an end has no window: it would
// excuse all that follows.
func (p *policyLog) requestEnded(s *session, f *schemas.RequestFinished) string {
	at := callKey{s, f.Request, f.StartNS}
	r := p.requests[at]
	switch {
	case r == nil:
		return schemas.WhyConflict
	case f.EndNS < f.StartNS:
		return schemas.WhyField
	}
	delete(p.requests, at)
	if r.end = f.EndNS; r.ofClient {
		s.requests = append(s.requests, r)
	}
	return ""
}

// planRequests makes the times in which the requests of a session ran.
func (s *session) planRequests() {
	var list []*request
	for _, r := range s.requests {
		if !r.denied {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.method, b.method))
	})
	for _, r := range list {
		if n := len(s.busy); n > 0 && r.start <= s.busy[n-1].end {
			b := &s.busy[n-1]
			b.end = max(b.end, r.end)
			if len(b.requests) < maxRequestsTogether {
				b.requests = append(b.requests, r)
			}
			continue
		}
		s.busy = append(s.busy, busy{r.start, r.end, []*request{r}})
	}
}

// running returns the requests that ran at a time.
func (s *session) running(ktime uint64) (list []*request) {
	i, ok := slices.BinarySearchFunc(s.busy, ktime, func(b busy, t uint64) int { return cmp.Compare(b.start, t) })
	if !ok {
		i--
	}
	if i < 0 || s.busy[i].end < ktime {
		return nil
	}
	for _, r := range s.busy[i].requests {
		if r.start <= ktime && ktime <= r.end {
			list = append(list, r)
		}
	}
	return list
}
