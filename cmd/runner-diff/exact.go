package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// member is the bytes of a member of the base, in a scratch file.
type member struct {
	from, size int64
	sum        hash.Hash
	digest     string
	other      *compared // of the new archive; nil if that has no such member
}

// exact compares two archives byte by byte, member by member.
func exact(ctx context.Context, env *tool.Env, opt *Options) error {
	base, err := evidence.OpenFile(ctx, env, opt.Bases[0])
	if err != nil {
		return err
	}
	defer base.Close()
	fresh, err := evidence.OpenFile(ctx, env, opt.New)
	if err != nil {
		return err
	}
	defer fresh.Close()
	scratch, err := tool.Spool()
	if err != nil {
		return err
	}
	defer scratch.Close()
	members, err := unpack(ctx, base, scratch)
	if err != nil {
		return err
	}
	var extra []string
	err = fresh.Read(ctx, archive.Visitor{Bytes: func(name string) io.Writer {
		m := members[name]
		if m == nil {
			extra = append(extra, name)
			return nil
		}
		m.other = &compared{file: scratch, at: m.from, end: m.from + m.size, sum: sha256.New(), differs: -1}
		return m.other
	}})
	if err != nil {
		return err
	}
	same, err := tell(env.Stdout, members, extra)
	switch {
	case err != nil:
		return tool.CannotWrite("standard output", err)
	case !same:
		return tool.Status(tool.ExitNo)
	}
	return nil
}

// unpack writes the members of an archive to a file, one after the other.
func unpack(ctx context.Context, e *evidence.Evidence, to *os.File) (map[string]*member, error) {
	members := map[string]*member{}
	var at int64
	err := e.Read(ctx, archive.Visitor{Bytes: func(name string) io.Writer {
		m := &member{from: at, sum: sha256.New()}
		members[name] = m
		return writerFunc(func(b []byte) (int, error) {
			n, err := to.Write(b)
			m.sum.Write(b[:n])
			m.size, at = m.size+int64(n), at+int64(n)
			return n, err
		})
	}})
	for _, m := range members {
		m.digest = hex.EncodeToString(m.sum.Sum(nil))
	}
	return members, err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// compared compares what is written with a part of a file.
type compared struct {
	file    *os.File
	at, end int64
	size    int64
	differs int64 // the first byte that does, from 0; -1 is none
	line    int64 // lines before it
	sum     hash.Hash
	buf     [32 << 10]byte
}

func (c *compared) Write(b []byte) (int, error) {
	c.sum.Write(b)
	for rest := b; len(rest) > 0 && c.differs < 0; {
		n := min(int64(len(rest)), int64(len(c.buf)), c.end-c.at)
		if n == 0 {
			c.differs = c.size
			break
		}
		if _, err := c.file.ReadAt(c.buf[:n], c.at); err != nil {
			return 0, err
		}
		old := c.buf[:n]
		if !bytes.Equal(old, rest[:n]) {
			at := 0
			for old[at] == rest[at] {
				at++
			}
			c.differs = c.size + int64(at)
			c.line += int64(bytes.Count(old[:at], []byte("\n")))
			break
		}
		c.line += int64(bytes.Count(old, []byte("\n")))
		c.at, c.size, rest = c.at+n, c.size+n, rest[n:]
	}
	return len(b), nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tell writes the result, in the order of archives.
func tell(w io.Writer, members map[string]*member, extra []string) (same bool, err error) {
	same = true
	say := func(format string, a ...any) {
		if _, e := fmt.Fprintf(w, format, a...); e != nil {
			err = e
		}
	}
	names := slices.Collect(maps.Keys(members))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(b2i(b == schemas.MemberManifest), b2i(a == schemas.MemberManifest)), cmp.Compare(a, b))
	})
	for _, name := range names {
		m := members[name]
		switch o := m.other; {
		case o == nil:
			same = false
			say("only base   %s\n", name)
		case o.differs >= 0 || o.at != o.end:
			if same = false; o.differs < 0 {
				o.differs = o.size
			}
			say("differs     %s at byte %d, line %d\n  base sha256:%s\n  new  sha256:%s\n", name, o.differs+1, o.line+1, m.digest, hex.EncodeToString(o.sum.Sum(nil)))
		default:
			say("equal       %s sha256:%s\n", name, m.digest)
		}
	}
	for _, name := range extra {
		same = false
		say("only new    %s\n", verdict.Printable(name, maxShownName))
	}
	return same, err
}
