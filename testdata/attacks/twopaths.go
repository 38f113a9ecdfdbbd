//go:build linux

package main

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

func init() {
	add(attack{name: "a second name beside one without a place", class: "B9", user: true,
		what: "renameat2 from a name below a memfd, which has no place, to a relative name: it fails, and the second name has its directory all the same",
		run: func(w *world) error {
			m, err := unix.MemfdCreate("x", 0)
			if err != nil {
				return err
			}
			if err := unix.Renameat2(m, "a", unix.AT_FDCWD, "b", 0); err != unix.ENOTDIR {
				return fmt.Errorf("renameat2: %w", err)
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventRenameTo {
					continue
				}
				if l.text() != e.path("b") {
					return lie("false: %s", e.show(l))
				}
				return exact()
			}
			return lie("absent: the second name")
		}})
}
