//go:build linux

package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// ownMounts gives the attack mounts of its own, which end with it.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	return unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

func init() {
	add(attack{name: "mount moved by its descriptor", class: "A13",
		what: "move_mount from an open_tree descriptor: after the call that is at the new place",
		run: func(w *world) error {
			if err := errors.Join(ownMounts(), unix.Mkdir("m1", 0o700), unix.Mkdir("m2", 0o700), unix.Mount("none", "m1", "tmpfs", 0, "")); err != nil {
				return err
			}
			fd, err := unix.OpenTree(unix.AT_FDCWD, "m1", 0)
			if err != nil {
				return err
			}
			return unix.MoveMount(fd, "", unix.AT_FDCWD, "m2", unix.MOVE_MOUNT_F_EMPTY_PATH)
		},
		judge: func(e *evidence) verdict {
			return e.compare(append(done(schemas.EventMoveMountFrom, "m1"), done(schemas.EventMoveMountTo, "m2")...))
		}})

	add(attack{name: "pivot_root onto itself", class: "A13",
		what: `pivot_root(".", "."), then umount of ".", as containers start`,
		run: func(w *world) error {
			if err := errors.Join(ownMounts(), unix.Mkdir("root", 0o700), unix.Mount("none", "root", "tmpfs", 0, ""), unix.Chdir("root")); err != nil {
				return err
			}
			return errors.Join(unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH))
		},
		judge: func(e *evidence) verdict {
			return e.compare(append(done(schemas.EventPivotRootNew, "root"), done(schemas.EventPivotRootOld, "root")...))
		}})
}
