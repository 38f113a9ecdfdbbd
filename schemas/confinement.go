package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// ConfinementForm is one thing that a confined command is started without.
type ConfinementForm struct {
	Name, Why string
	Mechanism string // of file rules, if exactly that one confines so
}

// What a command can be started without (STREAMS.md, "Confinement").
const (
	ConfinedNoNewPrivs = "no_new_privs"
	ConfinedNamespace  = "mount_namespace"
	ConfinedLandlock   = SourceLandlock
	ConfinedDomain     = "domain"
	ConfinedSignals    = "signals"
	ConfinedSeccomp    = "seccomp"

	ConfinedKernelFiles  = "kernel_files"
	ConfinedCapabilities = "capabilities"
)

// Confinements are all of them, in the order in which they are named.
var Confinements = [...]ConfinementForm{
	{Name: ConfinedNoNewPrivs, Why: "an exec gives no rights that the caller lacks"},
	{Name: ConfinedNamespace, Why: "mounts of its own, for file rules by fanotify", Mechanism: SourceFanotify},
	{Name: ConfinedKernelFiles, Why: "the files of the kernel read-only: /proc, /sys, the cgroups, debugfs and others, but for what /proc has of its own processes"},
	{Name: ConfinedLandlock, Why: "file rules by Landlock", Mechanism: SourceLandlock},
	{Name: ConfinedDomain, Why: "a Landlock domain: mounts cannot be changed, and processes outside cannot be reached by ptrace or through /proc"},
	{Name: ConfinedSignals, Why: "no signals to processes outside of the domain"},
	{Name: ConfinedCapabilities, Why: "no capabilities over the kernel, devices, clocks, scheduling and the network's configuration"},
	{Name: ConfinedSeccomp, Why: "calls that attack the observer, or give files other places, are refused with EPERM"},
}

// CheckConfined says why a list of confinements is wrong: it has known names, each once
// and in order.
func CheckConfined(names []string) error {
	last := -1
	for _, name := range names {
		i := slices.IndexFunc(Confinements[:], func(c ConfinementForm) bool { return c.Name == name })
		if i <= last {
			return fmt.Errorf("confined has %.100q, expected known names in order, each once", strings.Join(names, ","))
		}
		last = i
	}
	return nil
}

// JoinConfined is the fact confined.
func JoinConfined(names []string) string { return strings.Join(names, ",") }

// SplitConfined reads the fact confined.
func SplitConfined(fact string) ([]string, error) {
	names := strings.Split(fact, ",")
	return names, CheckConfined(names)
}
