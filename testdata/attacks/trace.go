//go:build linux

package main

import (
	"bufio"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// straceArgs make strace print what parseTrace reads: strings in hexadecimal, numbers as they
// are, paths of descriptors.
var straceArgs = []string{"-f", "-qq", "-y", "-xx", "-X", "raw", "-s", "5000", "-e", "signal=none", "-e",
	"trace=?open,openat,openat2,?creat,execve,execveat,connect,bind,listen,sendto,sendmsg,sendmmsg,?unlink,unlinkat,?rmdir,?rename,?renameat," +
		"renameat2,?link,linkat,?symlink,symlinkat,?mkdir,mkdirat,truncate,ftruncate,?chmod,fchmod,fchmodat,?chown,?lchown,fchown,fchownat," +
		"?mknod,mknodat,write,mount,umount2,move_mount,pivot_root,faccessat,getsockname,getpeername"}

// traced is one system call as strace saw it.
type traced struct {
	tid   int
	name  string
	args  []string
	ret   int64
	fd    string // path of the descriptor that it returned
	never bool   // it was interrupted before it had a result, or did not come back
}

var ending = regexp.MustCompile(`^(-?\d+)(?:<(.*)>(\(deleted\))?)?(?: (E[A-Z0-9]+) .*)?$`)

// errnos are the numbers of the names that strace prints.
var errnos = func() map[string]int64 {
	m := map[string]int64{}
	for e := range 134 {
		m[unix.ErrnoName(unix.Errno(e))] = int64(e)
	}
	m["EOPNOTSUPP"], m["EWOULDBLOCK"], m["EDEADLOCK"] = int64(unix.EOPNOTSUPP), int64(unix.EWOULDBLOCK), int64(unix.EDEADLK)
	return m
}()

// parseTrace gives the calls in the order in which they ended.
func parseTrace(file string, each func(c traced)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<22)
	pending := map[string]string{}
	for s.Scan() {
		tid, rest, _ := strings.Cut(s.Text(), " ")
		rest = strings.TrimLeft(rest, " ")
		if head, ok := strings.CutSuffix(rest, " <unfinished ...>"); ok {
			pending[tid] = head
			continue
		}
		if i := strings.Index(rest, " resumed>"); strings.HasPrefix(rest, "<... ") && i > 0 {
			rest = pending[tid] + rest[i+len(" resumed>"):]
			delete(pending, tid)
		}
		if c, ok := parseCall(rest); ok {
			c.tid, _ = strconv.Atoi(tid)
			each(c)
		}
	}
	return s.Err()
}

func parseCall(l string) (c traced, ok bool) {
	open := strings.IndexByte(l, '(')
	end := strings.LastIndex(l, " = ")
	if open <= 0 || end < open || strings.HasPrefix(l, "+++") {
		return c, false
	}
	c.name = l[:open]
	c.args = split(strings.TrimSuffix(strings.TrimRight(l[open+1:end], " "), ")"))
	m := ending.FindStringSubmatch(l[end+3:])
	if m == nil {
		c.never = true
		return c, true
	}
	c.ret, _ = strconv.ParseInt(m[1], 10, 64)
	if c.fd = unhex(m[2]); m[4] != "" {
		c.ret = -errnos[m[4]]
	}
	return c, true
}

// split splits arguments at the commas outside of brackets.
func split(s string) (args []string) {
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			if s[i] != '>' || i == 0 || s[i-1] != '=' {
				depth--
			}
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	return append(args, strings.TrimSpace(s[from:]))
}

// unhex takes strace's \x61\x62 apart; other bytes stay.
func unhex(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x' {
			n, _ := strconv.ParseUint(s[i+2:i+4], 16, 8)
			b.WriteByte(byte(n))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// str is a string argument; ok is false if it is an address that cannot be read.
func str(arg string) (text string, ok bool) {
	if len(arg) < 2 || arg[0] != '"' {
		return "", false
	}
	cut := strings.HasSuffix(arg, "...")
	arg = strings.TrimSuffix(arg, "...")
	return unhex(arg[1 : len(arg)-1]), !cut
}

// num is a number as strace prints it: decimal, octal or hexadecimal.
func num(arg string) uint64 {
	arg, _, _ = strings.Cut(arg, "<")
	if strings.HasPrefix(arg, "-") {
		n, _ := strconv.ParseInt(arg, 0, 64)
		return uint64(n)
	}
	n, _ := strconv.ParseUint(arg, 0, 64)
	return n
}

// dirOf is the path that strace names for a descriptor; "" without one.
func dirOf(arg string) string {
	_, path, ok := strings.Cut(arg, "<")
	if !ok {
		return ""
	}
	path, _, _ = strings.Cut(path, ">")
	return strings.TrimSuffix(unhex(path), " (deleted)")
}
