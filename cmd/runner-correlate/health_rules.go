package main

// role says what a counter of runner-capture means for the record.
type role int

const (
	loss    role = iota // above 0 the kernel layer is not complete
	escape              // above 0 the record has lost track of the command
	quality             // every event is there, but a name is less than exact
	ended               // how the run ended
	blind               // part of the note about blind spots
	balance             // enters the sums below, means nothing alone
)

// counterRules are the counters that runner-capture must report. A counter that
// is not in this table says nothing about completeness and is left alone.
var counterRules = []struct {
	name string
	role role
	why  string
}{
	{"canary", balance, "records of the runner's own probe of its hooks"},
	{"compat_unmapped", loss, "32-bit system calls that no operation is known for"},
	{"decode_errors", loss, "records that arrived but could not be read"},
	{"dropped", loss, "records that found the ring full"},
	{"emitted", balance, "records handed to the ring"},
	{"escapes", escape, "tasks that were moved out of the measured cgroup"},
	{"foreign", balance, "records about tasks outside of the scope"},
	{"inherited_fds", blind, "descriptors the command was started with"},
	{"io_uring_unmapped", loss, "io_uring operations that no operation is known for"},
	{"lexical", quality, "paths joined from text, not as the kernel resolved them"},
	{"path_fault", quality, "paths the kernel could not be asked for"},
	{"path_truncated", quality, "paths longer than the record holds"},
	{"read", balance, "records received from the ring"},
	{"recursion_misses", loss, "times a hook was entered while it ran, and skipped"},
	{"scratch_missing", loss, "entries without a place to keep their arguments"},
	{"seen", balance, "records the probes began"},
	{"spooled_bytes", balance, "bytes held back on disk for a slow reader"},
	{"survivors_killed", ended, "tasks that outlived the grace time"},
	{"user_fault", quality, "arguments in memory that could not be read"},
	{"user_truncated", quality, "arguments longer than the record holds"},
}

// enforcementCounters are reported too when network rules were enforced.
var enforcementCounters = []string{"network_rules", "blocked"}

// blockedBy begins the names of the counters of single rules; blocked is their sum.
const blockedBy = "blocked.rule."

// condition is a cause for an incomplete layer that is not one counter above 0.
// value is the text behind the cause's name, "" when the cause is not given.
type condition struct {
	cause string
	why   string
	value func(c *capture) string
}

var conditions = []condition{
	{"canary_after", "the probe of the hooks at the end was not seen", func(c *capture) string { return unless("seen", c.fact("canary_after")) }},
	{"canary_before", "the probe of the hooks at the start was not seen", func(c *capture) string { return unless("seen", c.fact("canary_before")) }},
	{"hooks_missing", "required hooks did not attach", func(c *capture) string { return commas(c.fact("hooks_missing")) }},
	{"redundant_lost", "the second copy of the hooks saw more than the first", func(c *capture) string { return c.redundantLoss() }},
	{"unaccounted", "records begun are not the sum of emitted and dropped", func(c *capture) string { return difference(c.n("seen"), c.n("emitted")+c.n("dropped")) }},
	{"unread", "records handed to the ring did not arrive", func(c *capture) string { return difference(c.n("emitted"), c.n("read")) }},
}

// requiredFacts are the facts that runner-capture must report, and the values
// that are known. An empty list takes any text.
var requiredFacts = []struct {
	name   string
	values []string
}{
	{"canary_after", []string{"seen", "missed", "not_run"}},
	{"canary_before", []string{"seen", "missed", "not_run"}},
	{"end", []string{"empty", "killed", "signal"}},
	{"hooks_missing", nil},
	{"io_uring", nil},
	{"kernel_capture", []string{"attached", "not_requested", "unsupported"}},
	{"platform", nil},
	{"redundant", nil},
	{"supervisor", []string{"exec", "none"}},
	{"unix_hooks", nil},
}

// blindSpots are what no counter can see, in every run.
var blindSpots = []string{
	"descriptors received from other processes",
	"shared memory",
	"peers of datagrams on connected sockets",
	"reads and writes on open descriptors",
	"work done for the command outside of its cgroup",
	"symlinks inside paths that are known only lexically, and what another thread made of their text during the call",
}

// pastRules is what network rules do not hold for (schemas/POLICY.md, "Network enforcement").
const pastRules = "past the network rules: families but IPv4, IPv6 and unix, sockets made outside the cgroup or connected before, " +
	"listeners without a bind, other names of unix sockets, routes that options or outer programs choose, programs that may change BPF"

// optionalHooks are the parts whose absence is a blind spot and no loss.
var optionalHooks = []struct{ fact, what string }{
	{"io_uring", "io_uring operations"},
	{"redundant", "calls of tasks that were preempted in a probe"},
	{"unix_hooks", "unix socket endpoints"},
}
