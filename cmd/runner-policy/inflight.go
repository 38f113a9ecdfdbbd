package main

import (
	"crypto/sha256"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/schemas"
)

const (
	maxInFlight  = 4096 // requests that wait for an answer
	maxForgotten = 1024 // cancelled requests whose answer may still come
	maxRounds    = 1024 // states with which a call may continue in another request
)

// entry is one request in flight.
type entry struct {
	id        jsonrpc.ID
	method    string
	call      *call    // nil: not a tool call
	request   *request // of any other request; nil for one whose decision was not recorded
	mayBeTask bool     // a call that asks to go on as a task
	task      string   // of a request about a task: its id
	cancelled bool
	ended     atomic.Bool // its end is in the log
	order     uint64
}

// call is one attempt of a tool call that was forwarded.
type call struct {
	number  uint64
	attempt uint64
	tool    string
	id      callID
	startNS uint64
	round   *multiRoundCall
}

// request is a request, other than a tool call, that was forwarded.
type request struct{ number, startNS uint64 }

// multiRoundCall is one logical call that consists of several requests.
type multiRoundCall struct {
	number   uint64
	attempts uint64
	tool     string
	id       callID
}

// inFlight is the requests without an answer. Both directions use it.
type inFlight struct {
	mu        sync.Mutex
	byID      map[string]*entry
	silent    []*entry // calls sent as notifications: never answered
	cancelled []string // keys, the oldest first
	lists     int      // tools/list requests in flight
	order     uint64
	rounds    map[[sha256.Size]byte]*multiRoundCall
	states    [][sha256.Size]byte // the oldest first
}

func newInFlight() *inFlight {
	return &inFlight{byID: map[string]*entry{}, rounds: map[[sha256.Size]byte]*multiRoundCall{}}
}

// room returns the reason code if a request cannot be forwarded now, or "".
func (t *inFlight) room(m jsonrpc.Message) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.Kind == jsonrpc.Request && t.byID[m.ID.Key] != nil {
		return schemas.ReasonIDInUse
	}
	if len(t.byID)+len(t.silent)-len(t.cancelled) >= maxInFlight {
		return schemas.ReasonTooManyCalls
	}
	return ""
}

// add notes a request that is about to be forwarded.
func (t *inFlight) add(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.order = t.order
	t.order++
	if e.id.Key == "" {
		t.silent = append(t.silent, e)
		return
	}
	t.byID[e.id.Key] = e
	if e.method == jsonrpc.MethodList {
		t.lists++
	}
}

// cancel notes that a request was cancelled, so its answer may never come. It returns
// nil if no request with this key is in flight.
func (t *inFlight) cancel(key string) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[key]
	if e == nil {
		return nil
	}
	if e.cancelled {
		return e
	}
	e.cancelled = true
	t.cancelled = append(t.cancelled, key)
	if len(t.cancelled) > maxForgotten {
		t.remove(t.byID[t.cancelled[0]])
	}
	return e
}

// answered removes and returns the request that an answer belongs to.
func (t *inFlight) answered(key string) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byID[key]
	if e != nil {
		t.remove(e)
	}
	return e
}

// find returns the request that an answer belongs to, or nil.
func (t *inFlight) find(key string) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[key]
}

func (t *inFlight) remove(e *entry) {
	delete(t.byID, e.id.Key)
	if e.method == jsonrpc.MethodList {
		t.lists--
	}
	if e.cancelled {
		i := slices.Index(t.cancelled, e.id.Key)
		t.cancelled = slices.Delete(t.cancelled, i, i+1)
	}
}

// listing reports whether an answer to tools/list may come.
func (t *inFlight) listing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lists > 0
}

// drain removes all requests, in the order in which they were sent.
func (t *inFlight) drain() []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.silent
	for _, e := range t.byID {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *entry) int { return int(a.order) - int(b.order) })
	t.byID, t.silent, t.cancelled, t.lists = map[string]*entry{}, nil, nil, 0
	return out
}

// resumable notes the state with which a call may continue in another request.
func (t *inFlight) resumable(state []byte, c *call) {
	sum := sha256.Sum256(state)
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.round == nil {
		c.round = &multiRoundCall{c.number, c.attempt, c.tool, c.id}
	}
	if t.rounds[sum] == nil {
		t.states = append(t.states, sum)
		if len(t.states) > maxRounds {
			delete(t.rounds, t.states[0])
			t.states = slices.Delete(t.states, 0, 1)
		}
	}
	t.rounds[sum] = c.round
}

// resumed returns the call that a request with this state continues, and the number of
// the attempt. It returns nil for a new call. A request for another tool is a new call.
func (t *inFlight) resumed(state []byte, tool string) (*multiRoundCall, uint64) {
	sum := sha256.Sum256(state)
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rounds[sum]
	if r == nil || r.tool != tool {
		return nil, 1
	}
	r.attempts++
	return r, r.attempts
}
