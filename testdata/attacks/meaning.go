//go:build linux

package main

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// expected is one line that a faithful record has for what strace saw.
type expected struct {
	kind    uint32
	value   string   // text form; "null" for none
	others  []string // further values that are true too
	bare    string   // the value without the directory that it starts from
	ret     int64
	flags   string // flags, mode and resolve of an open; "" is any
	address bool   // its value is a socket address
	stream  bool   // sent by a stream socket, or without a family
	unrun   bool   // a seccomp filter answered the call
	hooked  bool   // only the hook shows it, which knows no result: a send that names no address
	maybe   bool   // that of a message of sendmmsg that failed after others, or of a send without a name: it need not have come to the hook
	call    string // for messages
	tid     int    // the thread that made it
}

// process is what is known of one process of a trace.
type process struct {
	lines   []expected
	threads int
	ring    bool // it uses io_uring, whose workers have lines of their own
	root    string
	answers map[string]bool   // calls that its filter answers
	bound   map[string]string // where the unix sockets are that have these names
}

// meaning turns a trace into the lines of each process, by process id.
type meaning struct {
	processes map[int]*process
	group     map[int]int    // thread to process
	cwd       map[int]string // of a thread, as last told
	stream    map[int]bool   // its last socket is a stream
	peer      map[int]string // the IPv4 peer of its last socket, if that is an IPv6 one for datagrams
	calls     int
}

func newMeaning() *meaning {
	return &meaning{processes: map[int]*process{}, group: map[int]int{}, cwd: map[int]string{}, stream: map[int]bool{}, peer: map[int]string{}}
}

func (m *meaning) process(tid int) *process {
	pid, ok := m.group[tid]
	if !ok {
		pid = tid
	}
	p := m.processes[pid]
	if p == nil {
		p = &process{answers: map[string]bool{}, bound: map[string]string{}, root: "/"}
		m.processes[pid] = p
	}
	return p
}

// last is the last line of a thread, of a type if that is not 0.
func (p *process) last(tid int, kind uint32) *expected {
	for i := len(p.lines) - 1; i >= 0; i-- {
		if e := &p.lines[i]; e.tid == tid && (kind == 0 || e.kind == kind) {
			return e
		}
	}
	return nil
}

// add takes one call.
func (m *meaning) add(c traced) {
	if c.name == "faccessat" {
		m.told(c)
		return
	}
	p := m.process(c.tid)
	if c.name == "getpeername" {
		m.setPeer(c)
	}
	if c.name == "getsockname" || c.name == "getpeername" {
		if e := p.last(c.tid, 0); e != nil && c.ret == 0 {
			name := endpoint(c.args[1], func(name string) string { return p.join(m.cwd[c.tid], name) })
			e.others = append(e.others, name)
			if e.kind == schemas.EventListen { // its own name, of which the directory is that of a bind some calls ago
				e.bare = endpoint(c.args[1], func(name string) string { return new(process).join("", name) })
			}
			if place := p.bound[name]; place != "" && e.kind == schemas.EventListen {
				e.others = append(e.others, place)
			}
		}
		return
	}
	s := shapes[c.name]
	if s == nil || c.never {
		return
	}
	m.calls++
	lines := s(m, p, &c)
	for i := range lines {
		lines[i].ret, lines[i].call, lines[i].tid = c.ret, c.name, c.tid
		lines[i].unrun = p.answers[c.name]
	}
	p.lines = append(p.lines, lines...)
}

// told takes what a program tells, see actor.tell.
func (m *meaning) told(c traced) {
	if len(c.args) < 2 {
		return
	}
	what, _ := str(c.args[1])
	what, ours := strings.CutPrefix(what, "?")
	if !ours {
		return
	}
	dir := dirOf(c.args[0])
	if strings.HasPrefix(c.args[0], "-100") {
		m.cwd[c.tid] = dir
	}
	word, rest, _ := strings.Cut(what, ":")
	p := m.process(c.tid)
	switch word {
	case "process":
		m.group[c.tid], _ = strconv.Atoi(rest)
		p = m.process(c.tid)
		p.threads++
	case "member":
		m.group[c.tid], _ = strconv.Atoi(rest)
	case "stream", "datagram":
		m.stream[c.tid], m.peer[c.tid] = word == "stream", ""
	case "bound": // its own last bind: symlinks in the name are followed now
		if e := p.last(c.tid, schemas.EventBind); e != nil {
			name := e.value
			e.value, e.others = "unix:"+p.join(dir, rest), nil
			p.bound[name] = e.value
		}
	case "root":
		if rest == "0" {
			p.root = dir
		}
	case "filter":
		action, n, _ := strings.Cut(rest, ":")
		count, _ := strconv.Atoi(n)
		if a, _ := strconv.ParseUint(action, 0, 64); a != seccompAllow && a != 0x7ffc0000 {
			for _, name := range []string{"mkdirat", "unlinkat", "renameat2", "fchmodat", "symlinkat", "truncate"}[:count] {
				p.answers[name] = true
			}
		}
	case "ring":
		f := strings.SplitN(rest, ":", 3)
		kind, _ := strconv.Atoi(f[0])
		ret, _ := strconv.ParseInt(f[1], 10, 64)
		value := p.join(m.cwd[c.tid], f[2])
		if kind == schemas.EventOpenat && ret >= 0 {
			value = schemas.Text(dir)
		}
		m.calls++
		p.ring = true
		p.lines = append(p.lines, expected{kind: uint32(kind), value: value, ret: ret, call: "io_uring"})
	}
}

// join is the value of a name that is known as text, as DERIVATION.md says.
func (p *process) join(base, name string) string {
	absolute := strings.HasPrefix(name, "/")
	if absolute {
		if base = p.root; base == "" {
			base = "/"
		}
	}
	out := strings.TrimRight(base, "/")
	leading, any := true, false
	for _, part := range strings.Split(name, "/") {
		if part == "" || part == "." {
			continue
		}
		if leading && part == ".." && base != "" {
			if absolute {
				continue
			}
			if p.root == "/" {
				if i := strings.LastIndexByte(out, '/'); i >= 0 {
					out = out[:i]
				}
				continue
			}
		}
		leading = false
		if any || base != "" {
			out += "/"
		}
		out, any = out+part, true
	}
	if out == "" && base != "" {
		out = "/"
	}
	return schemas.Text(out)
}

// named is a line with a path argument that starts at a directory argument, or at the working
// directory.
func (m *meaning) named(p *process, c *traced, kind uint32, dir, path int) expected {
	e := expected{kind: kind, value: "null", bare: "null"}
	if path >= len(c.args) {
		return e
	}
	if name, ok := str(c.args[path]); ok {
		base := m.cwd[c.tid]
		if dir >= 0 {
			base = dirOf(c.args[dir])
		}
		e.value, e.bare = p.join(base, name), new(process).join("", name)
	}
	return e
}

// object is the value of a descriptor argument.
func object(arg string) string {
	if d := dirOf(arg); d != "" {
		return schemas.Text(d)
	}
	return "null"
}

type shape func(m *meaning, p *process, c *traced) []expected

// shapes say what lines each call has.
var shapes = map[string]shape{
	"open":       opened(-1, 0, 1, 2),
	"creat":      opened(-1, 0, -1, 1),
	"openat":     opened(0, 1, 2, 3),
	"openat2":    opened(0, 1, -2, -2),
	"unlink":     one(schemas.EventUnlink, -1, 0),
	"rmdir":      one(schemas.EventRmdir, -1, 0),
	"mkdir":      one(schemas.EventMkdir, -1, 0),
	"mkdirat":    one(schemas.EventMkdir, 0, 1),
	"mknod":      one(schemas.EventMknod, -1, 0),
	"mknodat":    one(schemas.EventMknod, 0, 1),
	"symlink":    one(schemas.EventSymlink, -1, 1),
	"symlinkat":  one(schemas.EventSymlink, 1, 2),
	"truncate":   one(schemas.EventTruncate, -1, 0),
	"chmod":      one(schemas.EventChmod, -1, 0),
	"fchmodat":   one(schemas.EventChmod, 0, 1),
	"chown":      one(schemas.EventChown, -1, 0),
	"lchown":     one(schemas.EventChown, -1, 0),
	"fchownat":   one(schemas.EventChown, 0, 1),
	"umount2":    one(schemas.EventUmount, -1, 0),
	"execve":     failedExec(-1, 0),
	"execveat":   failedExec(0, 1),
	"ftruncate":  byDescriptor(schemas.EventTruncate),
	"fchmod":     byDescriptor(schemas.EventChmod),
	"fchown":     byDescriptor(schemas.EventChown),
	"rename":     two(schemas.EventRenameFrom, -1, 0, schemas.EventRenameTo, -1, 1),
	"renameat":   two(schemas.EventRenameFrom, 0, 1, schemas.EventRenameTo, 2, 3),
	"renameat2":  two(schemas.EventRenameFrom, 0, 1, schemas.EventRenameTo, 2, 3),
	"link":       two(schemas.EventLinkFrom, -1, 0, schemas.EventLinkTo, -1, 1),
	"linkat":     two(schemas.EventLinkFrom, 0, 1, schemas.EventLinkTo, 2, 3),
	"move_mount": two(schemas.EventMoveMountFrom, 0, 1, schemas.EventMoveMountTo, 2, 3),
	"mount": func(m *meaning, p *process, c *traced) []expected {
		source := "null"
		if s, ok := str(c.args[0]); ok {
			source = schemas.Text(s)
		}
		return []expected{m.named(p, c, schemas.EventMount, -1, 1), {kind: schemas.EventMountSource, value: source}}
	},
	"unlinkat": func(m *meaning, p *process, c *traced) []expected {
		kind := uint32(schemas.EventUnlink)
		if num(c.args[2])&unix.AT_REMOVEDIR != 0 {
			kind = schemas.EventRmdir
		}
		return []expected{m.named(p, c, kind, 0, 1)}
	},
	"connect":  onSocket(schemas.EventConnect, 1),
	"bind":     onSocket(schemas.EventBind, 1),
	"listen":   onSocket(schemas.EventListen, -1),
	"sendto":   onSocket(schemas.EventSendto, 4),
	"sendmsg":  onSocket(schemas.EventSendmsg, 1),
	"sendmmsg": messages,
	"write": func(m *meaning, _ *process, c *traced) []expected {
		if !strings.Contains(unhex(c.args[0]), "<socket:") {
			return nil
		}
		return m.unnamed(c)
	},
}

func one(kind uint32, dir, path int) shape {
	return func(m *meaning, p *process, c *traced) []expected {
		return []expected{m.named(p, c, kind, dir, path)}
	}
}

func two(kind uint32, dir, path int, kind2 uint32, dir2, path2 int) shape {
	return func(m *meaning, p *process, c *traced) []expected {
		return []expected{m.named(p, c, kind, dir, path), m.named(p, c, kind2, dir2, path2)}
	}
}

func byDescriptor(kind uint32) shape {
	return func(_ *meaning, _ *process, c *traced) []expected {
		return []expected{{kind: kind, value: object(c.args[0])}}
	}
}

// failedExec: one that succeeds is another line, of the file that the kernel chose.
func failedExec(dir, path int) shape {
	return func(m *meaning, p *process, c *traced) []expected {
		if c.ret >= 0 {
			return nil
		}
		return []expected{m.named(p, c, schemas.EventExecFailed, dir, path)}
	}
}

const tmpfile = unix.O_TMPFILE &^ unix.O_DIRECTORY

// opened: flags of -1 are creat's, -2 are in a structure.
func opened(dir, path, flags, mode int) shape {
	return func(m *meaning, p *process, c *traced) []expected {
		e := m.named(p, c, schemas.EventOpenat, dir, path)
		var f, mo, resolve uint64
		known := true
		switch flags {
		case -1:
			f, mo = unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, num(c.args[mode])
		case -2:
			known = strings.HasPrefix(c.args[2], "{")
			for _, field := range split(strings.Trim(c.args[2], "{}")) {
				k, v, _ := strings.Cut(field, "=")
				switch k {
				case "flags":
					f = num(v)
				case "mode":
					mo = num(v)
				case "resolve":
					resolve = num(v)
				}
			}
		default:
			if f = num(c.args[flags]); mode < len(c.args) {
				mo = num(c.args[mode])
			}
		}
		if name, ok := str(c.args[path]); ok && flags == -2 && (!known || resolve&unix.RESOLVE_IN_ROOT != 0) {
			inside := p.join("", strings.TrimLeft(name, "/")) // no root: there is no such descriptor
			if root := dirOf(c.args[dir]); root != "" {
				inside = (&process{root: root}).join("", "/"+name)
			}
			if known {
				e.value = inside
			} else { // strace does not show a structure that is too small: it may ask for this
				e.others = append(e.others, inside)
			}
		}
		if f&(unix.O_CREAT|tmpfile) == 0 {
			mo = 0
		}
		if known {
			e.flags = openNumbers(f, mo, resolve)
		}
		if c.ret >= 0 && c.fd != "" {
			e.value = schemas.Text(strings.TrimSuffix(c.fd, " (deleted)"))
			if f&tmpfile != 0 && f&unix.O_PATH == 0 {
				e.value = e.value[:max(1, strings.LastIndexByte(e.value, '/'))]
			}
		}
		return []expected{e}
	}
}

func openNumbers(flags, mode, resolve uint64) string {
	return strconv.FormatUint(flags, 8) + " " + strconv.FormatUint(mode, 8) + " " + strconv.FormatUint(resolve, 8)
}
