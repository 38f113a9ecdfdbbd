package main

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// TestInferred: a call that failed where a rule denies is a refusal, with what was denied.
func TestInferred(t *testing.T) {
	rules := &schemas.FileRules{FilesDefault: schemas.DecisionAllow, ExecDefault: schemas.DecisionAllow, Rules: []schemas.FileRule{
		{Number: 1, ID: "read", Action: schemas.DecisionDeny, Path: "/r", On: []string{schemas.HookRead}},
		{Number: 2, ID: "change", Action: schemas.DecisionDeny, Path: "/w", On: []string{schemas.HookWrite, schemas.HookCreate, schemas.HookDelete}},
		{Number: 3, ID: "exec", Action: schemas.DecisionDeny, Path: "/x", On: []string{schemas.HookExec}}}}
	const refused = -int64(unix.EACCES)
	for _, c := range []struct {
		op, path, second string
		flags            uint64
		ret              int64
		hook             string
		rule             uint32
	}{
		{op: schemas.OpOpenat, path: "/r/a", ret: refused, hook: schemas.HookRead, rule: 1},
		{op: schemas.OpOpenat, path: "/r/a", flags: unix.O_WRONLY, ret: refused},
		{op: schemas.OpOpenat, path: "/r/a", flags: unix.O_PATH, ret: refused},
		{op: schemas.OpOpenat, path: "/r/a", ret: -int64(unix.ENOENT)},
		{op: schemas.OpOpenat, path: "/w/a", flags: unix.O_RDWR, ret: refused, hook: schemas.HookWrite, rule: 2},
		{op: schemas.OpOpenat, path: "/w/a", ret: refused},
		{op: schemas.OpMkdir, path: "/w/a", ret: refused, hook: schemas.HookCreate, rule: 2},
		{op: schemas.OpUnlink, path: "/w/a", ret: refused, hook: schemas.HookDelete, rule: 2},
		{op: schemas.OpRename, path: "/a", second: "/w/a", ret: refused, hook: schemas.HookCreate, rule: 2},
		{op: schemas.OpExecve, path: "/x/a", ret: refused, hook: schemas.HookExec, rule: 3},
		{op: schemas.OpExecve, path: "/r/a", ret: refused, hook: schemas.HookRead, rule: 1},
		{op: schemas.OpExecve, path: "/w/a", ret: refused},
	} {
		g := &fileGuard{rules: rules, mechanism: schemas.SourceLandlock, errnos: landlockErrnos, counts: map[uint32]uint64{}}
		e := &schemas.RawEvent{Op: c.op, Has: schemas.HasRet, Ret: c.ret, Flags: c.flags, Path: []byte(c.path)}
		if c.second != "" {
			e.Base2, e.UserPath2 = []byte("/"), []byte(c.second)
		}
		got, ok := g.inferred(e)
		if ok != (c.hook != "") || got.Hook != c.hook || got.Rule != c.rule || g.inserted != uint64(len(g.counts)) {
			t.Errorf("%+v: %t, hook %q of rule %d, counts %v", c, ok, got.Hook, got.Rule, g.counts)
		}
	}
}
