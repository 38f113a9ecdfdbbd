package schemas

import (
	"slices"
	"strconv"
	"strings"
)

// The texts of the note about blind spots that depend on the run. Those of every run are
// BlindSpots.

// BlindNetworkRules is what network rules do not cover (POLICY.md, "Network enforcement").
const BlindNetworkRules = "past the network rules: families but IPv4, IPv6 and unix, sockets made outside the cgroup or connected before, " +
	"listeners without a bind, other names of unix sockets, routes that options or outer programs choose, programs that may change BPF"

// BlindFileRules is what file rules do not cover, whatever enforces them (POLICY.md,
// "File enforcement"), and BlindMechanism what each mechanism lets through in addition.
const BlindFileRules = "past the file rules: descriptors opened before or outside of the run, memory mapped before, names that are only looked at, " +
	"work done for the command outside of its cgroup, copies of what may be read"

// BlindMechanism is what each mechanism of file rules lets through in addition.
var BlindMechanism = map[string]string{
	SourceLSM:      "past LSM: programs that may change BPF",
	SourceFanotify: "past fanotify: why a change was refused, FIFOs and devices in what is read-only, directories inherited as descriptors, file systems mounted by others",
	SourceLandlock: "past Landlock: why a call was refused, changes of mode, owner, times and attributes",
}

// BlindHooks are the parts whose absence is a blind spot, not a loss.
var BlindHooks = [...]struct{ Fact, What string }{
	{FactIOUring, "io_uring operations"},
	{FactRedundant, "calls of tasks that were preempted in a probe"},
	{FactUnixHooks, "unix socket endpoints"},
}

// BlindLogs names the logs of the run that the file rules let the command write to; their
// number follows.
const BlindLogs = "logs of the run that automatic rules let the command write to"

// blindFormer are texts of earlier releases, whose archives stay valid.
var blindFormer = [...]string{
	"symlinks inside paths that are known only lexically",
	"past fanotify: mounts that the command makes, programs that may enter another mount namespace",
	"past Landlock: why a call was refused, changes of mode, owner and times, and paths that other mounts lead to",
}

// BlindText is a text of the note about blind spots, and when it is there.
type BlindText struct {
	Text, When string
	Under      *Note  // the note without which it is not there; nil: it needs none
	Mechanism  string // the one that this note names; "" is any
}

// BlindTexts are all texts, for the specification. Where one has a part of its own, it is (N),
// a number, or (WHY), a text.
func BlindTexts() []BlindText {
	list := []BlindText{{Text: BlindInherited + " (N)", When: "of every capture, first: descriptors above 2 that the command, or what was in the cgroup already, was started with or had opened"}}
	add := func(text, when string) { list = append(list, BlindText{Text: text, When: when}) }
	for _, text := range BlindSpots {
		add(text, "of every capture")
	}
	add(BlindReceived+" (N)", "in the place of the one without a number, if some were seen to come")
	add(BlindScripts, "of every capture")
	add(BlindForeign+" (N)", "if there was some")
	for _, h := range BlindHooks {
		add(h.What+" (WHY)", "when `"+h.Fact+"` says so")
	}
	add(BlindLoaders, "when `"+FactLoaded+"` says that the probes do without "+LoadLoop)
	add(BlindCores+" (N)", "if there were some")
	add(BlindEarlier+" (N)", "if the cgroup had processes when the capture began")
	add(BlindRoots+" (N)", "if there were some: pivot_root, as container engines do. A path in such a namespace begins at its root")
	add(BlindArguments+" (N)", "if there were some: calls of tasks that share their memory, or whose memory is of a file")
	list = append(list, BlindText{BlindNetworkRules, "under network rules", NoteNetwork, ""}, BlindText{BlindFileRules, "under file rules", NoteFiles, ""},
		BlindText{BlindLogs + " (N)", "under file rules, if there were some", NoteFiles, ""})
	for _, mechanism := range FileMechanisms {
		list = append(list, BlindText{BlindMechanism[mechanism], "under file rules by `" + mechanism + "`", NoteFiles, mechanism})
	}
	for _, text := range blindFormer {
		add(text, "in archives of earlier releases")
	}
	return list
}

// knownBlindSpot reports whether a text can be in the note.
func knownBlindSpot(text string) bool {
	name, rest, _ := strings.Cut(text, " (")
	part, closed := strings.CutSuffix(rest, ")")
	n, err := strconv.ParseUint(part, 10, 64)
	number := err == nil && part == strconv.FormatUint(n, 10) && (n > 0 || name == BlindInherited)
	return slices.ContainsFunc(BlindTexts(), func(b BlindText) bool {
		return b.Text == text || b.Text == name+" (N)" && closed && number || b.Text == name+" (WHY)" && closed && !Covers(part)
	})
}
