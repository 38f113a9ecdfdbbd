package main

import (
	"bytes"
	"strings"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/jsonrpc"
	"github.com/runner-evidence/runner/schemas"
)

// Calls that go on as tasks (MCP 2025-11-25): the answer to the call only names a task. The call ends when
// the task does: with the answer to tasks/result, or when an answer or a notification says that it has ended.

const methodTaskStatus = "notifications/tasks/status"

// maxTasks bounds the tasks that are followed. Of the oldest ones beyond it no end is recorded.
const maxTasks = 1024

// tasks are the calls that go on.
type tasks struct {
	mu    sync.Mutex
	calls map[string]*entry // by the id of their task
	order []string          // of the ids, the oldest first
}

func (t *tasks) add(id string, e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string]*entry{}
	}
	if t.calls[id] == nil {
		t.order = append(t.order, id)
	}
	t.calls[id] = e
	if len(t.order) > maxTasks {
		delete(t.calls, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *tasks) find(id string) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[id]
}

// drain returns the calls whose end is not known, in the order in which they began.
func (t *tasks) drain() (list []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range t.order {
		if e := t.calls[id]; e != nil {
			list = append(list, e)
		}
	}
	t.calls, t.order = nil, nil
	return list
}

// mayHave reports whether a message may have a key of this name, which may be written with escapes.
func mayHave(line []byte, key string) bool {
	return bytes.Contains(line, []byte(key)) || bytes.Contains(line, []byte(`\u`))
}

// asksForTask reports whether a call may go on as a task.
func asksForTask(sc *jsonrpc.Scanner, line []byte) bool {
	if !mayHave(line, "task") {
		return false
	}
	params, _ := decode(line, sc.Value(jsonrpc.FieldParams))
	_, asked := member(params, "task").(map[string]any)
	return asked
}

// taskOf is the id of the task that a request is about, "" for another request.
func taskOf(method string, params any) string {
	if !strings.HasPrefix(method, "tasks/") {
		return ""
	}
	id, _ := member(params, "taskId").(string)
	return id
}

func member(v any, key string) any {
	m, _ := v.(map[string]any)
	return m[key]
}

// taskBegins reports whether an answer says that its call goes on as a task, and follows it. line is nil for an
// answer that is too long to be read.
func (v *serverReader) taskBegins(e *entry, line []byte) bool {
	if !e.mayBeTask || line == nil || outcomeOf(v.sc) != schemas.OutcomeCompleted {
		return false
	}
	result, _ := decode(line, v.sc.Value(jsonrpc.FieldResult))
	task := member(result, "task")
	id, _ := member(task, "taskId").(string)
	status, _ := member(task, "status").(string)
	if id == "" || taskOutcomes[status] != "" {
		return false
	}
	v.tasks.add(id, e)
	return true
}

// taskOutcomes are the outcomes of calls by the last status of their tasks. Other states go on.
var taskOutcomes = map[string]string{"completed": schemas.OutcomeCompleted, "failed": schemas.OutcomeToolError, "cancelled": schemas.OutcomeCancelled}

// taskAnswered ends the call of a task if an answer about the task says that it has ended.
func (v *serverReader) taskAnswered(e *entry, line []byte, end uint64) {
	call := v.tasks.find(e.task)
	if e.task == "" || call == nil {
		return
	}
	outcome := outcomeOf(v.sc)
	if e.method != "tasks/result" {
		if outcome != schemas.OutcomeCompleted || line == nil {
			return // the question failed, not the task
		}
		result, _ := decode(line, v.sc.Value(jsonrpc.FieldResult))
		status, _ := member(result, "status").(string)
		outcome = taskOutcomes[status]
	}
	if outcome != "" && outcome != schemas.OutcomeInputRequired {
		v.finish(call, end, outcome)
	}
}

// taskNotified ends the call of a task if a notification of the server says that it has ended.
func (v *serverReader) taskNotified(m jsonrpc.Message, line []byte) {
	if m.Method != methodTaskStatus {
		return
	}
	params, _ := decode(line, v.sc.Value(jsonrpc.FieldParams))
	id, _ := member(params, "taskId").(string)
	status, _ := member(params, "status").(string)
	if call := v.tasks.find(id); call != nil && taskOutcomes[status] != "" {
		v.finish(call, now(), taskOutcomes[status])
	}
}
