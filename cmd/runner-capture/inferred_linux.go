package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Errors of calls that a mechanism refuses without telling us. What the rules say about
// such a call is the reason that the record gives: it is inferred.
var (
	landlockErrnos = []int64{-int64(unix.EACCES), -int64(unix.EXDEV)}
	mountErrnos    = []int64{-int64(unix.EROFS), -int64(unix.EBUSY), -int64(unix.EXDEV)}
)

// inferred is the refusal behind a failed call; false if the rules do not explain it.
func (g *fileGuard) inferred(e *schemas.RawEvent) (schemas.RawEvent, bool) {
	if g == nil || e.Has&schemas.HasRet == 0 || !slices.Contains(g.errnos, e.Ret) {
		return schemas.RawEvent{}, false
	}
	first, second := lexicalName(e, e.Path, e.Base, e.UserPath), lexicalName(e, e.Path2, e.Base2, e.UserPath2)
	if first == nil {
		return schemas.RawEvent{}, false
	}
	for _, resolve := range []func([]byte) []byte{same, followLinks} {
		a, b := resolve(first), resolve(second)
		if hook, rule, at, denied := g.denied(e, a, b); denied {
			g.counts[rule]++
			g.inserted++
			return schemas.RawEvent{Op: schemas.OpFileBlocked, KtimeNS: e.KtimeNS, CgroupID: e.CgroupID, PID: e.PID, TID: e.TID, CPU: e.CPU,
				Has: schemas.HasRule, Rule: rule, Source: g.mechanism, Hook: hook, Base: []byte{'/'}, UserPath: []byte(schemas.Text(string(at)))}, true
		}
	}
	return schemas.RawEvent{}, false
}

// lexicalName is the name of a call's path, as bytes; nil if it is not known.
func lexicalName(e *schemas.RawEvent, path, base, user []byte) []byte {
	atRoot := false
	if path == nil {
		if user == nil || base == nil {
			return nil
		}
		if e.Resolve&schemas.ResolveInRoot != 0 {
			user = append([]byte{'/'}, user...)
		}
		path = schemas.AppendLexical(nil, base, user)
		atRoot = string(base) == "/" && bytes.HasPrefix(user, base)
	}
	b, err := schemas.Untext(string(path))
	if err != nil {
		return nil
	}
	if atRoot {
		b = withoutRoot(b, e.PID, e.TID)
	}
	return b
}

// withoutRoot is a path without the names in /proc of the root directory of the task that
// uses it, which is also ours.
func withoutRoot(path []byte, pid, tid uint32) []byte {
	for _, dir := range []string{"self", "thread-self", fmt.Sprint(pid), fmt.Sprintf("self/task/%d", tid), fmt.Sprintf("%d/task/%d", pid, tid)} {
		if rest, ok := bytes.CutPrefix(path, []byte("/proc/"+dir+"/root/")); ok {
			return withoutRoot(append([]byte{'/'}, rest...), pid, tid)
		}
	}
	return path
}

func same(path []byte) []byte { return path }

// followLinks is the path without links, as they are now; the last name stays if there is
// nothing.
func followLinks(path []byte) []byte {
	if path == nil {
		return nil
	}
	if p, err := placeOf(string(path)); err == nil {
		return []byte(p)
	}
	dir, name := filepath.Split(string(path))
	if p, err := placeOf(dir); err == nil {
		return []byte(filepath.Join(p, name))
	}
	return path
}

// placeOf is where a path leads now. The links of /proc to what a process has open are not
// followed: the process can have closed it since, or be another one by now, and then the
// answer would depend on time. Neither are those to the process that asks, which is us.
func placeOf(path string) (string, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	if st.Nlink == 0 {
		return "", unix.ENOENT // removed meanwhile
	}
	place, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
	if err == nil && strings.HasPrefix(place+"/", fmt.Sprintf("/proc/%d/", os.Getpid())) {
		err = unix.ELOOP
	}
	return place, err
}

// denied asks the rules about each thing that the call does, in turn.
func (g *fileGuard) denied(e *schemas.RawEvent, first, second []byte) (hook string, rule uint32, path []byte, denied bool) {
	for _, q := range questions(e) {
		at := first
		if q.second {
			at = second
		}
		if at == nil {
			continue
		}
		if q.hook == schemas.HookMove {
			rule, denied = g.rules.Moves(first, second)
			at = first
		} else {
			rule, denied = g.rules.Decide(at, q.hook)
		}
		if denied {
			return q.hook, rule, bytes.Clone(at), true
		}
	}
	return "", 0, nil, false
}

// question is one thing that a call does with its first or its second path.
type question struct {
	hook   string
	second bool
}

// questions are what the rules say something about, in the order in which the kernel
// looks at it.
func questions(e *schemas.RawEvent) []question {
	switch e.Op {
	case schemas.OpOpen, schemas.OpOpenat, schemas.OpOpenat2, schemas.OpCreat, schemas.OpIOUringOpenat, schemas.OpIOUringOpenat2:
		return openQuestions(e)
	case schemas.OpTruncate, schemas.OpChmod, schemas.OpChown:
		return []question{{hook: schemas.HookWrite}}
	case schemas.OpMkdir, schemas.OpMknod, schemas.OpSymlink:
		return []question{{hook: schemas.HookCreate}}
	case schemas.OpUnlink, schemas.OpRmdir:
		return []question{{hook: schemas.HookDelete}}
	case schemas.OpExecve, schemas.OpExecveat, schemas.OpExecCheck:
		return []question{{hook: schemas.HookExec}, {hook: schemas.HookRead}} // to Landlock, executing is reading too
	case schemas.OpRename:
		return []question{{hook: schemas.HookDelete}, {schemas.HookCreate, true}, {schemas.HookMove, true}}
	case schemas.OpLink:
		return []question{{schemas.HookCreate, true}, {schemas.HookMove, true}}
	}
	return nil
}

func openQuestions(e *schemas.RawEvent) (list []question) {
	flags := e.Flags
	if e.Op == schemas.OpCreat {
		flags = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
	}
	if flags&unix.O_PATH != 0 {
		return nil
	}
	if mode := flags & unix.O_ACCMODE; mode != unix.O_WRONLY {
		list = append(list, question{hook: schemas.HookRead})
	}
	if flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0 {
		list = append(list, question{hook: schemas.HookWrite})
	}
	if flags&unix.O_CREAT != 0 || flags&unix.O_TMPFILE == unix.O_TMPFILE {
		list = append(list, question{hook: schemas.HookCreate})
	}
	return list
}
