package box

import (
	"math/rand/v2"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
)

// TestOps: the op of two names is that of their states in the record.
func TestOps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	one := func() tree.Entry {
		e := tree.Entry{Path: "x", Kind: []tree.Kind{tree.File, tree.Dir, tree.Symlink, tree.Char}[r.IntN(4)], Mode: uint32(r.IntN(2)), UID: uint32(r.IntN(2)), GID: uint32(r.IntN(2))}
		switch e.Kind {
		case tree.File:
			e.Size = uint64(r.IntN(2))
			switch r.IntN(3) {
			case 0:
				e.Link = []string{"a", "b"}[r.IntN(2)]
			case 1:
				e.SHA256[0] = byte(r.IntN(2))
			default:
				e.Unread = "EACCES"
			}
		case tree.Dir:
			e.Mount = r.IntN(3) == 0
		case tree.Symlink:
			e.Target = []string{"a", "b"}[r.IntN(2)]
		case tree.Char:
			e.Device = uint64(r.IntN(2))
		}
		return e
	}
	i := new(inside)
	for range 100_000 {
		a, b := one(), one()
		op := ""
		if d := tree.Diff([]tree.Entry{a}, []tree.Entry{b}); len(d) > 0 {
			op = string(d[0].Op)
		}
		if got := schemas.ChangeOf(i.state(&a), i.state(&b)); got != op {
			t.Fatalf("%+v\n%+v\nare %q, and their states %q", a, b, op, got)
		}
	}
}
