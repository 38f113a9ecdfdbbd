package schemas

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Interference is one kind of what a program of the scope can do to the measurement itself
// (STREAMS.md, "Interference"). With any, the kernel layer is not complete.
type Interference struct {
	Kind string
	Why  string
}

// Kinds of interference.
const (
	InterferenceBPF    = "bpf"
	InterferenceHelper = "helper"
	InterferenceKernel = "kernel"
	InterferenceLinks  = "links"
	InterferenceMove   = "move"
	InterferenceRing   = "ring"
	InterferenceSignal = "signal"
	InterferenceTrace  = "trace"
	InterferenceUnseen = "unseen"
)

// Interferences are all kinds, by name.
var Interferences = [...]Interference{
	{InterferenceBPF, "got a descriptor of one of the capture's own BPF objects, or of a program that can change what others see or do"},
	{InterferenceHelper, "opened for writing a file that names programs which the kernel starts outside of the cgroup, or for others: core_pattern, modprobe, hotplug, poweroff_cmd, usermodehelper, uevent_helper, release_agent, binfmt_misc/register"},
	{InterferenceKernel, "loaded a kernel module or another kernel, got the right to use I/O ports, or opened the memory of the kernel, registers of the processor, debugfs, sysrq-trigger or ftrace_enabled for writing"},
	{InterferenceLinks, "detached or replaced a probe: at the end it was not attached as at the start"},
	{InterferenceMove, "moved a process of the runner to another cgroup"},
	{InterferenceRing, "changed how far the ring counts as read"},
	{InterferenceSignal, "sent a process of the runner a signal that stops or ends it, but for those of job control (SIGTSTP, SIGTTIN, SIGTTOU) in its own process group, where runner-exec stops with the command as at ^Z"},
	{InterferenceTrace, "traced a process of the runner, wrote into its memory or its files in /proc, or took its descriptors"},
	{InterferenceUnseen, "opened something for writing by io_uring, as root or with other rights over the kernel, as a direct descriptor, without a completion, or so that it was closed before its completion, or asked fanotify for descriptors to write: it can have been any of these files"},
}

// FormatInterference is the fact interference of a run, "" without any.
func FormatInterference(n map[string]uint64) string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		words = append(words, kind+"="+strconv.FormatUint(n[kind], 10))
	}
	return strings.Join(words, " ")
}

// InterferenceKinds are the kinds that the fact interference names, separated by commas.
func InterferenceKinds(fact string) string {
	var kinds []string
	for word := range strings.FieldsSeq(fact) {
		kind, _, _ := strings.Cut(word, "=")
		kinds = append(kinds, kind)
	}
	return strings.Join(kinds, ",")
}
