package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// opened is the place at which the kernel arrives, or empty.
func opened(t *testing.T, p string) string {
	t.Helper()
	const oPath = 0x200000
	fd, err := syscall.Open(p, oPath, 0)
	if err != nil {
		return ""
	}
	defer syscall.Close(fd)
	place, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		t.Fatal(err)
	}
	return place
}

// In whatever way a server reads an allowed path, the kernel arrives below the rule's
// directory. A path that no deny rule matches does not lead below a denied directory.
func TestUnderAgainstTheKernel(t *testing.T) {
	top := tree(t)
	work := top + "/work"
	allow := rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, under: "+work+"}]}]")
	deny := rules(t, "default: allow\nrules: [{id: r, deny: x, args: [{at: $.a, under: "+top+"/other}]}]")
	pieces := []string{"work", "dir", "in", "out", "up", "loop", "gone", "self", "file", "other", "secret", "link", "workshop", "..", "..", ".", "",
		"none", `in\..`, `..\..`, "%2e%2e", "%2E.", "..%2f..", "%252e%252e", "o%75t", "~", "in ", `out\secret`, "other%5csecret"}
	r := rand.New(rand.NewPCG(7, 8))
	reached, denied := 0, 0
	for range 8_000 {
		var parts []string
		for range 1 + r.IntN(7) {
			parts = append(parts, pieces[r.IntN(len(pieces))])
		}
		s := strings.Join(parts, "/")
		if r.IntN(3) > 0 {
			s = top + "/" + s
		}
		c := Call{Tool: "x", Arguments: map[string]any{"a": s}, Dir: work}
		allowed, through := allow.Decide(context.Background(), &c).Allow, deny.Decide(context.Background(), &c).Allow
		made := []string{s, strings.ReplaceAll(s, `\`, "/")}
		for _, x := range made {
			for range 2 {
				if u, err := url.PathUnescape(x); err == nil {
					x = u
					made = append(made, u, strings.ReplaceAll(u, `\`, "/"))
				}
			}
		}
		for _, m := range made {
			whole, _ := join(work, m)
			for _, p := range []string{whole, path.Clean(whole)} {
				place := opened(t, p)
				if place == "" {
					continue
				}
				if reached++; allowed && !schemas.Holds(work, place) {
					t.Fatalf("%q was allowed and leads to %s as %q", s, place, p)
				}
				if schemas.Holds(top+"/other", place) {
					if denied++; through {
						t.Fatalf("%q was not denied and leads to %s as %q", s, place, p)
					}
				}
			}
		}
	}
	if reached < 1000 || denied < 1000 {
		t.Errorf("only %d places were reached, %d of them denied ones", reached, denied)
	}
}
