package confine

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

const abiScope = 6 // signals to processes outside can be refused

// ruleset is one Landlock layer: what it handles is refused except below the paths of
// its rules.
type ruleset struct {
	handled uint64
	scoped  uint64
	rules   []landlockRule
}

// landlockRule allows rights for a path and what is below it.
type landlockRule struct {
	path  string
	allow uint64
}

// LandlockABI is the version of Landlock that this kernel has, 0 without Landlock.
func LandlockABI() int {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// domain is a layer that refuses no access to files. A thread in it, as in any Landlock
// layer with files, cannot change mounts, or reach processes outside of it by ptrace,
// their memory, descriptors and namespaces in /proc included.
func domain(abi int, signals bool) ruleset {
	r := ruleset{handled: unix.LANDLOCK_ACCESS_FS_REFER,
		rules: []landlockRule{{"/", unix.LANDLOCK_ACCESS_FS_REFER}}}
	if signals && abi >= abiScope {
		r.scoped = unix.LANDLOCK_SCOPE_SIGNAL
	}
	return r
}

// rulesetOf is a layer as runner-capture describes it.
func rulesetOf(l *schemas.LandlockLayer) (r ruleset, err error) {
	if r.handled, err = schemas.LandlockBits(l.Handled); err != nil {
		return r, err
	}
	for _, rule := range l.Rules {
		path, err := schemas.Untext(rule.Path)
		if err != nil {
			return r, err
		}
		bits, err := schemas.LandlockBits(rule.Allow)
		if err != nil {
			return r, err
		}
		r.rules = append(r.rules, landlockRule{string(path), bits})
	}
	return r, nil
}

// restrict puts the calling thread below the layer.
func restrict(r ruleset) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: r.handled, Scoped: r.scoped}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("making a Landlock ruleset: %w", errno)
	}
	layer := os.NewFile(fd, "landlock")
	defer layer.Close()
	for _, rule := range r.rules {
		if err := allow(int(fd), rule); err != nil {
			return fmt.Errorf("a Landlock rule for %s: %w", rule.path, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("entering the Landlock domain: %w", errno)
	}
	return nil
}

func allow(layer int, rule landlockRule) error {
	at, err := unix.Open(rule.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	beneath := unix.LandlockPathBeneathAttr{Allowed_access: rule.allow, Parent_fd: int32(at)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(layer), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&beneath)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
