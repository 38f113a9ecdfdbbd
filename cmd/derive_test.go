package cmd_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestReaderDerives: kernel lines follow the specification. The derivation in
// testdata/reader, written in another language from the text, gives the same lines for
// every recorded run, and for random raw streams with threads, processes and network
// calls in every order.
func TestReaderDerives(t *testing.T) {
	requirePython(t)
	dirs, _ := filepath.Glob("../testdata/runs/*")
	var plain, windows []string
	for _, dir := range dirs {
		raw := filepath.Join(dir, "1-raw.ndjson")
		if flags, _ := logFlags(dir); len(flags) > 0 {
			windows = append(windows, raw)
		} else {
			plain = append(plain, raw)
		}
	}
	for seed := range uint64(200) {
		windows = append(windows, randomRaw(t, rand.New(rand.NewPCG(seed, 7))))
	}
	derivesAlike(t, plain)
	derivesAlike(t, plain, "--processes")
	derivesAlike(t, windows, "--windows")
	derivesAlike(t, windows, "--windows", "--canonical-pids", "--processes")
}

func derivesAlike(t *testing.T, files []string, flags ...string) {
	t.Helper()
	got := map[string]string{}
	for _, part := range strings.Split(reader(t, "", "derive.py", append(flags, files...)...), "= ") {
		name, lines, _ := strings.Cut(part, "\n")
		got[name] = lines
	}
	for _, file := range files {
		o := call(t, command(t, "runner-normalize", append(flags, file)...))
		if o.code != 0 {
			t.Fatalf("%s: %v", file, o)
		}
		var want strings.Builder
		for line := range strings.Lines(o.stdout) {
			if strings.HasPrefix(line, `{"schema":"`+schemas.SchemaKernelEvent) || strings.HasPrefix(line, `{"schema":"`+schemas.SchemaProcess) || strings.HasPrefix(line, `{"schema":"`+schemas.SchemaProcessEvent) {
				want.WriteString(line)
			}
		}
		if got[file] != want.String() {
			t.Errorf("%s, %v: the derivation from the text differs", file, flags)
			testkit.FirstDifference(t, file, []byte(got[file]), []byte(want.String()))
		}
	}
}

// randomRaw writes a whole raw stream of random events of few tasks, names and
// addresses, so that they meet often.
func randomRaw(t *testing.T, r *rand.Rand) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raw.ndjson")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := stream.NewWriter(f, stream.Header{Stream: schemas.StreamRaw, RunID: "random", Tool: "test", Version: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: "random", Type: "run_started", AgentShim: "none", Command: []string{}, EnvKeys: []string{}}))
	n := 10 + r.IntN(150)
	process := map[uint32]uint32{}
	for seq := range n {
		e := randomEvent(r, process)
		e.Seq, e.KtimeNS = uint64(seq), uint64(1000+seq*2/3)
		must(w.WriteRaw(e.AppendJSON(nil, "random")))
	}
	zero := 0
	must(w.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: "random", Seq: 1, Type: "run_finished", ExitCode: &zero, Success: true}))
	must(w.Write(schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: "random", Stage: schemas.StageCapture, In: uint64(n), Out: uint64(n),
		Filtered: map[string]uint64{}, Counters: map[string]uint64{}, Facts: map[string]string{schemas.FactKernelCapture: schemas.CaptureAttached}, Notes: []string{}}))
	must(w.Seal(schemas.StatusComplete))
	return path
}

var (
	randomOps   = []string{"fork", "fork", "exit", "move", "exec", "execve", "openat", "openat2", "creat", "unlink", "rename", "mount", "io_uring_other", "file_blocked", "context", "context"}
	randomCalls = []string{"connect", "connect", "connect", "connect_end", "connect_end", "sendto", "sendmsg", "sendmmsg", "bind", "listen", "connect_blocked"}
	randomAddrs = []string{"", "1.2.3.4:80", "[::ffff:1.2.3.4]:80", "[::1]:53", "unix:/run/a.sock", "unix:a.sock", "unix:./a.sock", "unix:a.sock/.//", "unix:b/..", "unix:/run/./a.sock/", "unix:/x/run/a.sock", "unix:/run/aa.sock", "unix:detached:/a.sock", "unix:@name"}
	randomNames = []string{"", "a", ".", "../b", "/c/./d", "./e/../f", "//", "..", "../../x", "/../y", `\\z`, "lib/x.so"}
	randomBases = []string{"", "/", "/w", "/w/v", "detached:/q"}
	randomPaths = []string{"", "/", "/w/f", "/lib/x", "/etc/ld.so.cache", "/proc/10/environ", "/proc/12/task/3/mem", "/proc/self/maps", "/dev/shm/a",
		"/dev/null", "/a/node_modules/b", "/a/target/debug/x.so.1", "memfd:q"}
	randomMarks = map[string][]schemas.Marks{
		schemas.SourceCgroup:  {0, 0, schemas.MarkIOUring, schemas.MarkUnpaired},
		schemas.SourceIOUring: {0, schemas.MarkSilent},
		schemas.SourceSyscall: {0, 0, 0, schemas.MarkChanged, schemas.MarkHooked, schemas.MarkChanged | schemas.MarkHooked, schemas.MarkOfSocket,
			schemas.MarkAddrFault, schemas.MarkUnproven, schemas.MarkDeferred},
	}
	randomFlags = []uint64{0, 0, 0, 1, 2, 3, 577, 0o2000000, 0o20000002, 0o400}
	randomRets  = []int64{0, 3, -2, -13, -1, -40, -115, -115, -115}
)

// one is one of several values.
func one[V any](r *rand.Rand, list []V) V { return list[r.IntN(len(list))] }

// named returns a name for three of four events, and "" for the others.
func named(r *rand.Rand, list []string, empty bool) []byte {
	if s := one(r, list); (s != "" || empty) && r.IntN(4) > 0 {
		return []byte(s)
	}
	return nil
}

// opens reports whether a probe says of this operation that it started over.
func opens(op string) bool {
	return slices.Contains([]string{"openat", "openat2", "creat", "exec", "execve"}, op)
}

func randomEvent(r *rand.Rand, process map[uint32]uint32) schemas.RawEvent {
	tid := uint32(10 + r.IntN(6))
	if process[tid] == 0 || r.IntN(12) == 0 {
		process[tid] = uint32(10 + 2*r.IntN(3))
	}
	e := schemas.RawEvent{Op: one(r, randomOps), CgroupID: 7, PID: process[tid], TID: tid}
	if r.IntN(2) == 0 {
		e.Op, e.Addr = one(r, randomCalls), named(r, randomAddrs, false)
		e.Source = one(r, schemas.RawSources[:])
		if r.IntN(4) > 0 {
			e.Socket, e.Has = uint64(1+r.IntN(3)), schemas.HasSocket
		}
		if marks := randomMarks[e.Source]; marks != nil {
			e.Marks = one(r, marks)
		}
	}
	if r.IntN(8) > 0 {
		e.Has, e.Ret = e.Has|schemas.HasRet, one(r, randomRets)
	}
	switch e.Op {
	case "fork":
		e.Has, e.ChildTID = schemas.HasChild, uint32(10+r.IntN(6))
		e.ChildPID = one(r, []uint32{e.PID, e.ChildTID})
		process[e.ChildTID] = e.ChildPID
	case "exit", "move", "context":
		e.Has = 0
	case "connect_blocked":
		e.Source, e.Hook, e.Has, e.Rule = "cgroup", one(r, schemas.RawHooks[:]), schemas.HasRule, uint32(r.IntN(4))
	case "file_blocked":
		e.Source, e.Hook, e.Has, e.Rule = "", one(r, schemas.RawHooks[:]), schemas.HasRule, uint32(r.IntN(4))
	case "openat", "openat2", "creat":
		e.Has |= schemas.HasFlags | schemas.HasMode | schemas.HasResolve
		e.Flags, e.Mode, e.Resolve = one(r, randomFlags), uint64(r.IntN(2)*420), uint64(r.IntN(2)*8)
	case "execve":
		if e.Ret, e.Has = -2, schemas.HasRet; r.IntN(4) == 0 {
			e.Has = 0 // interrupted
		}
	case "exec":
		if e.Interp = named(r, []string{"", "/bin/sh"}, false); r.IntN(3) == 0 {
			e.Has, e.OldTID = e.Has|schemas.HasOldTID, uint32(10+r.IntN(6))
		}
	}
	if opens(e.Op) && r.IntN(3) == 0 {
		e.Marks |= schemas.MarkStartedOver
	}
	if (e.Op == "fork" || e.Op == "exec" || e.Op == "context") && r.IntN(6) > 0 {
		e.Has |= schemas.HasContext
		e.UID, e.GID, e.MountNS, e.Root = uint32(r.IntN(2)), uint32(r.IntN(2)*1000), uint32(1+r.IntN(4)), named(r, []string{"/", "/", "/srv/jail"}, false)
	}
	if (e.Op == "fork" || e.Op == "exec") && r.IntN(3) == 0 {
		e.Has |= schemas.HasNSPID
		e.NSPID, e.PIDNS = uint32(r.IntN(3)), uint32(r.IntN(3))
	}
	if e.Source == "" && e.Op != "fork" && e.Op != "exit" && e.Op != "move" && e.Op != "context" {
		e.Path, e.UserPath, e.Base = named(r, randomPaths, false), named(r, randomNames, true), named(r, randomBases, false)
		e.UserPath2, e.Base2 = named(r, randomNames, true), named(r, randomBases, false)
		e.Path2 = named(r, randomPaths, false)
		e.Marks = one(r, []schemas.Marks{0, 0, 0, schemas.MarkChroot, schemas.MarkDeleted, schemas.MarkFDRace, schemas.MarkUserTruncated,
			schemas.MarkChanged})
	}
	return e
}
