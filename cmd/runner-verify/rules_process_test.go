package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// processesOf are lines of the layer process; each is what follows seq.
func processesOf(lines ...string) (list []string) {
	for i, l := range lines {
		list = append(list, fmt.Sprintf(`{"schema":"assay.runner.process_event.v0","run_id":%q,"seq":%d,%s}`, runID, i, l))
	}
	return list
}

// Two processes that share the ten kernel lines of layered out.
const (
	firstProcess  = `"process":1,"lines":1,"states":[{"by":"exec","file":"/usr/bin/sh","uid":0,"gid":0}]`
	secondStart   = `"process":2,"parent":1,"lines":9,"states":[{"by":"start","uid":0,"gid":0},`
	secondExec    = `{"by":"exec","file":"/usr/bin/files","uid":1000,"gid":1000,"mount_namespace":1,"root":"/srv/jail"}`
	secondProcess = secondStart + secondExec + `]`
	processNote   = "normalize_processes: processes=2 omitted=0 states_omitted=0 unknown=0 argv=none key=none"
)

// withProcesses is layered with the layer process and notes.
func withProcesses(lines []string, notes ...string) content {
	a := layered()
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], `agent=4"]`, `agent=4","`+strings.Join(notes, `","`)+`"]`, 1)
	if len(lines) > 0 {
		a[schemas.MemberProcess] = strings.Join(lines, "\n") + "\n"
	}
	return a
}

// TestProcesses: a tree that shares out the kernel lines is valid; what is wrong with it has its rule.
func TestProcesses(t *testing.T) {
	note := func(n, omitted, cut, unknown int) string {
		return fmt.Sprintf("normalize_processes: processes=%d omitted=%d states_omitted=%d unknown=%d argv=none key=none", n, omitted, cut, unknown)
	}
	dropped := `normalize_drop: program=\".\" sha256=cdb4ee2aea69cc6a83331bbe96dc2caa9a299d21329efb0336fc02a82e1839a8 dropped=1`
	key := "sha256:" + strings.Repeat("0a", 32)
	argv := func(mode, key string) []string {
		return []string{strings.Replace(processNote, "argv=none key=none", "argv="+mode+" key="+key, 1)}
	}
	with := func(arguments string) []string {
		return processesOf(strings.Replace(firstProcess, `"gid":0}`, `"gid":0,"arguments":{`+arguments+`}}`, 1), secondProcess)
	}
	const full = `"name":"sh","count":2,"bytes":10,"argv":["/bin/sh","x"]`
	exec := func(file string) string { return `{"by":"exec","file":"` + file + `","uid":0,"gid":0}` }
	for _, c := range []struct {
		name  string
		notes []string
		lines []string
		rule  string // "" is valid
	}{
		{"good", []string{processNote}, processesOf(firstProcess, secondProcess), ""},
		{"two roots", []string{processNote}, processesOf(firstProcess, `"process":2,"lines":9,"states":[`+secondExec+`]`), ""},
		{"nobody knows", []string{note(1, 0, 0, 2)}, processesOf(`"process":1,"lines":10,"states":[{"by":"exec","file":"/usr/bin/sh"},{"by":"exec","file":"/usr/bin/files","uid":0,"gid":0,"root":"?"}]`), ""},
		{"states without room", []string{note(1, 0, 7, 0)}, processesOf(`"process":1,"lines":10,"states":[` + exec("/usr/bin/sh") + `],"states_omitted":7`), ""},
		{"processes without room", []string{note(1, 3, 0, 0)}, processesOf(firstProcess), ""},
		{"a line that --drop left out", []string{processNote, dropped}, processesOf(firstProcess, secondStart+exec("/usr/bin/x")+`,`+secondExec+`]`), ""},
		{"a name", argv("hash", "none"), with(`"name":"sh","count":2,"bytes":9`), ""},
		{"texts", argv("full", "none"), with(full), ""},
		{"a mark", argv("full", "none"), with(strings.Replace(full, `"x"`, `"[redacted token]"`, 1)), ""},
		{"a mark with a digest", argv("full", key), with(strings.Replace(full, `"x"`, `"[redacted token hmac-`+key+`]"`, 1)), ""},
		{"digests", argv("hash", key), with(`"count":1,"bytes":9,"digests":["` + key[7:] + `"]`), ""},
		{"not read", argv("full", "none"), with(`"count":0,"bytes":9000,"unread":9000`), ""},
		{"a mark of no rule", argv("full", "none"), with(strings.Replace(full, `"x"`, `"[redacted x]"`, 1)), ruleProcessLines},
		{"other bytes", argv("full", "none"), with(strings.Replace(full, `"bytes":10`, `"bytes":11`, 1)), ruleProcessLines},
		{"an unread rest", argv("full", "none"), with(strings.Replace(full, `"bytes":10`, `"bytes":1009,"unread":999`, 1)), ""},
		{"another name", argv("full", "none"), with(strings.Replace(full, `"sh"`, `"ls"`, 1)), ruleProcessLines},
		{"an argument in no text form", argv("full", "none"), with(strings.Replace(full, `"x"`, `"\\q"`, 1)), ruleProcessLines},
		{"arguments nobody asked for", argv("none", "none"), with(`"name":"sh","count":2,"bytes":9`), ruleProcessNote},
		{"texts nobody asked for", argv("hash", "none"), with(full), ruleProcessNote},
		{"no digests", argv("hash", key), with(`"name":"sh","count":2,"bytes":9`), ruleProcessNote},
		{"a mark without a digest", argv("full", key), with(strings.Replace(full, `"x"`, `"[redacted token]"`, 1)), ruleProcessNote},
		{"no mode", argv("some", "none"), with(full), ruleHealthNote},
		{"no key", argv("hash", "sha256:0a"), with(full), ruleHealthNote},
		{"number", []string{processNote}, processesOf(firstProcess, strings.Replace(secondProcess, `"process":2`, `"process":3`, 1)), ruleProcessLines},
		{"parent", []string{note(3, 0, 0, 0)}, processesOf(firstProcess, `"process":2,"parent":1,"lines":9,"states":[{"by":"start","uid":0,"gid":0},`+secondExec+`]`, `"process":3,"parent":3,"lines":0,"states":[{"by":"start","uid":0,"gid":0}]`), ruleProcessLines},
		{"no walk", []string{note(4, 0, 0, 0)}, processesOf(firstProcess, secondProcess, `"process":3,"parent":1,"lines":0,"states":[{"by":"start","uid":0,"gid":0}]`, `"process":4,"parent":2,"lines":0,"states":[{"by":"start","uid":0,"gid":0}]`), ruleProcessLines},
		{"no start", []string{processNote}, processesOf(firstProcess, `"process":2,"parent":1,"lines":9,"states":[`+secondExec+`]`), ruleProcessLines},
		{"a second start", []string{processNote}, processesOf(firstProcess, secondStart+secondExec+`,{"by":"start","uid":0,"gid":0}]`), ruleProcessLines},
		{"nothing of a child", []string{note(3, 0, 0, 0)}, processesOf(firstProcess, secondProcess, `"process":3,"parent":1,"lines":0,"states":[]`), ruleProcessLines},
		{"no text form", []string{processNote}, processesOf(firstProcess, strings.Replace(secondProcess, "/srv/jail", `/srv\\q`, 1)), ruleProcessLines},
		{"namespaces", []string{processNote}, processesOf(firstProcess, strings.Replace(secondProcess, `"mount_namespace":1`, `"mount_namespace":2`, 1)), ruleProcessLines},
		{"too many states", []string{processNote}, processesOf(firstProcess, secondStart+strings.Repeat(`{"by":"call","uid":0,"gid":0},`, 63)+secondExec+`]`), ruleProcessLines},
		{"too few lines", []string{processNote}, processesOf(firstProcess, strings.Replace(secondProcess, `"lines":9`, `"lines":8`, 1)), ruleProcessKernel},
		{"too many lines", []string{processNote}, processesOf(firstProcess, strings.Replace(secondProcess, `"lines":9`, `"lines":10`, 1)), ruleProcessKernel},
		{"lines of others", []string{processNote}, processesOf(strings.Replace(firstProcess, `"lines":1`, `"lines":2`, 1), strings.Replace(secondProcess, `"lines":9`, `"lines":8`, 1)), ruleProcessKernel},
		{"another file", []string{processNote}, processesOf(firstProcess, strings.Replace(secondProcess, "/usr/bin/files", "/usr/bin/file", 1)), ruleProcessKernel},
		{"a script", []string{processNote}, processesOf(strings.Replace(firstProcess, `bin/sh"`, `bin/sh","script":"/x"`, 1), secondProcess), ruleProcessKernel},
		{"an exec more", []string{processNote}, processesOf(firstProcess, secondStart+secondExec+`,`+exec("/usr/bin/x")+`]`), ruleProcessKernel},
		{"an exec less", []string{processNote}, processesOf(firstProcess, strings.TrimSuffix(secondStart, ",")+`]`), ruleProcessKernel},
		{"two that --drop left out", []string{processNote, dropped}, processesOf(firstProcess, secondStart+exec("/x")+`,`+exec("/y")+`,`+secondExec+`]`), ruleProcessKernel},
		{"other count", []string{note(3, 0, 0, 0)}, processesOf(firstProcess, secondProcess), ruleProcessNote},
		{"other states", []string{note(2, 0, 1, 0)}, processesOf(firstProcess, secondProcess), ruleProcessNote},
		{"other knowledge", []string{note(2, 0, 0, 1)}, processesOf(firstProcess, secondProcess), ruleProcessNote},
		{"no member", []string{processNote}, nil, ruleProcessNote},
		{"no note", []string{"normalize_noise: table=none values=0 omitted=0"}, processesOf(firstProcess, secondProcess), ruleProcessNote},
		{"omitted alone", []string{note(0, 1, 0, 0)}, nil, ruleHealthNote},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, r := check(t, withProcesses(c.lines, c.notes...).digest(t).tar(t))
			if c.rule == "" && code != 0 || c.rule != "" && (code != 1 || !slices.Contains(rules(r), c.rule)) {
				t.Errorf("exit %d, %v", code, r.Findings)
			}
		})
	}
}

// TestProcessesAlone: a layer process beside a layer kernel without a line is compared with it like any other.
func TestProcessesAlone(t *testing.T) {
	a := sample()
	a[bundle.KernelName] = ""
	a[schemas.MemberProcess] = strings.Join(processesOf(`"process":1,"lines":0,"states":[{"by":"exec","file":"/usr/bin/sh","uid":0,"gid":0}]`), "") + "\n"
	code, r := check(t, a.digest(t).tar(t))
	if code != 1 || !slices.Contains(rules(r), ruleProcessKernel) {
		t.Errorf("exit %d, %v", code, r.Findings)
	}
}

// TestProcessIDs: the kernel lines of one process have one process id, and its number with canonical ones.
func TestProcessIDs(t *testing.T) {
	second := func(a content, pid string) {
		lines := strings.SplitAfter(a[bundle.KernelName], "\n")
		for i := 1; i < len(lines)-1; i++ {
			_, rest, _ := strings.Cut(lines[i], `"pid":`)
			old, _, _ := strings.Cut(rest, ",")
			lines[i] = strings.Replace(lines[i], `"pid":`+old, `"pid":`+pid, 1)
		}
		a[bundle.KernelName] = strings.Join(lines, "")
	}
	good := withProcesses(processesOf(firstProcess, secondProcess), processNote)
	second(good, "4711")
	if code, r := check(t, good.digest(t).tar(t)); code != 0 {
		t.Errorf("exit %d, %v", code, r.Findings)
	}
	one := withProcesses(processesOf(strings.Replace(firstProcess, `"lines":1,"states":[`, `"lines":10,"states":[`, 1)[:len(firstProcess)]+`,`+secondExec+`]`), "normalize_processes: processes=1 omitted=0 states_omitted=0 unknown=0 argv=none key=none")
	second(one, "4711")
	if code, r := check(t, one.digest(t).tar(t)); code != 1 || !slices.Contains(rules(r), ruleProcessKernel) {
		t.Errorf("two ids: exit %d, %v", code, r.Findings)
	}
	canonical := withProcesses(processesOf(firstProcess, secondProcess), "canonical_pids: pid is the process's number in the fork tree, not the kernel's", processNote)
	second(canonical, "4711")
	if code, r := check(t, canonical.digest(t).tar(t)); code != 1 || !slices.Contains(rules(r), ruleProcessKernel) {
		t.Errorf("other numbers: exit %d, %v", code, r.Findings)
	}
}
