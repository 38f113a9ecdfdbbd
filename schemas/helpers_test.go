package schemas

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/schemas/testkit"
)

const testRun = "run_01"

// specification is the text of all its documents.
func specification(t testing.TB) string {
	t.Helper()
	files, err := filepath.Glob("*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no specification: %v", err)
	}
	var text strings.Builder
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	return text.String()
}

// compileForm compiles the JSON Schema of a schema string.
func compileForm(t testing.TB, schema string) *jsonschema.Schema {
	t.Helper()
	f, ok := FormOf(schema)
	if !ok {
		t.Fatalf("no form for %s", schema)
	}
	return compileFile(t, f)
}

func compileFile(t testing.TB, f Form) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(f.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(f.File, doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile(f.File)
}

// schemaTakes reports whether b is one strict JSON value that s accepts.
func schemaTakes(s *jsonschema.Schema, b []byte) bool {
	var strict any
	if Unmarshal(b, &strict) != nil {
		return false
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	return err == nil && s.Validate(doc) == nil
}

// corpus calls fn for every member of every archive of another implementation,
// packed or unpacked, whose content names schema.
func corpus(t *testing.T, schema string, fn func(name string, b []byte)) {
	t.Helper()
	root := testkit.Corpora(t)
	form, _ := FormOf(schema)
	n := 0
	use := func(name string, b []byte) {
		if bytes.Contains(b, []byte(schema)) {
			n++
			fn(name, b)
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch {
		case strings.HasSuffix(filepath.ToSlash(path), "/"+form.Member):
			b, err := os.ReadFile(path)
			use(path, b)
			return err
		case strings.HasSuffix(path, ".tar.gz"):
			untar(path, form.Member, use)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Errorf("the corpus holds no %s", form.Member)
	}
	t.Logf("%d members %s", n, form.Member)
}

// untar returns the named member. A damaged archive may end early.
func untar(path, member string, use func(string, []byte)) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return
	}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err != nil {
			return
		}
		if h.Name == member {
			if b, err := io.ReadAll(tr); err == nil {
				use(path, b)
			}
		}
	}
}

func eachLine(b []byte, fn func(line []byte)) {
	for line := range bytes.Lines(b) {
		fn(bytes.TrimSuffix(line, []byte("\n")))
	}
}

func maybe(r *rand.Rand) bool { return r.IntN(2) == 0 }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomUint(r *rand.Rand) uint64 {
	return pick(r, 0, 1, 9, 10, uint64(r.IntN(1000)), r.Uint64(), r.Uint64()>>r.IntN(64), math.MaxUint64, math.MaxInt64)
}

func randomInt(r *rand.Rand) int64 {
	return pick(r, 0, 1, -1, -115, math.MinInt64, math.MaxInt64, int64(randomUint(r)))
}

func randomName(r *rand.Rand) []byte {
	if r.IntN(3) == 0 {
		return nil
	}
	return AppendText([]byte{}, randomBytes(r))
}

func randomRaw(r *rand.Rand) RawEvent {
	e := RawEvent{
		Seq: randomUint(r), Op: pick(r, RawOps[:]...), KtimeNS: randomUint(r), CgroupID: randomUint(r),
		PID: uint32(randomUint(r)), TID: uint32(randomUint(r)), CPU: uint32(r.IntN(64)), CPUSeq: randomUint(r),
		Path: randomName(r), UserPath: randomName(r), Base: randomName(r), UserPath2: randomName(r),
		Base2: randomName(r), Interp: randomName(r), Addr: randomName(r), Root: randomName(r),
		Source: pick(r, append(RawSources[:], "")...), FileType: pick(r, append(RawFileTypes[:], "")...),
		Hook:  pick(r, append(RawHooks[:], "")...),
		Marks: Marks(r.IntN(1 << len(markNames))),
	}
	number := func(h RawHas) bool {
		if maybe(r) {
			e.Has |= h
			return true
		}
		return false
	}
	if number(HasRet) {
		e.Ret = randomInt(r)
	}
	if number(HasFlags) {
		e.Flags = randomUint(r)
	}
	if number(HasMode) {
		e.Mode = randomUint(r)
	}
	if number(HasResolve) {
		e.Resolve = randomUint(r)
	}
	if number(HasOldTID) {
		e.OldTID = uint32(randomUint(r))
	}
	if number(HasChild) {
		e.ChildPID, e.ChildTID = uint32(randomUint(r)), uint32(randomUint(r))
	}
	if number(HasFamily) {
		e.Family = uint32(r.IntN(50))
	}
	if number(HasExitCode) {
		e.ExitCode = randomInt(r)
	}
	if number(HasDstCgroup) {
		e.DstCgroupID = randomUint(r)
	}
	if number(HasRule) {
		e.Rule = uint32(randomUint(r))
	}
	if number(HasSocket) {
		e.Socket = randomUint(r)
	}
	if number(HasProbe) {
		e.Probe = uint8(r.IntN(256))
	}
	if number(HasContext) {
		e.UID, e.GID, e.MountNS = uint32(randomUint(r)), uint32(randomUint(r)), uint32(randomUint(r))
	}
	if number(HasNSPID) {
		e.NSPID, e.PIDNS = uint32(randomUint(r)), uint32(randomUint(r))
	}
	return e
}

func randomKernel(r *rand.Rand) KernelEvent {
	e := KernelEvent{
		Seq: randomUint(r), PID: uint32(randomUint(r)),
		EventType: pick[uint32](r, 0, 1, 2, 3, 4, 6, 7, 10, 20, 112, 200, 213, 240, 255, 256, 999, math.MaxUint32),
		Value:     randomName(r), Destination: randomName(r),
		Operations: OperationFlags(r.IntN(16)),
	}
	e.Kind = KindOf(e.EventType)
	if e.EventType < uint32(len(otherKinds)) && otherKinds[e.EventType] != "" && maybe(r) {
		e.Kind = otherKinds[e.EventType]
	}
	if maybe(r) {
		e.Has |= KernelHasCgroupID
		e.CgroupID = randomUint(r)
	}
	if maybe(r) {
		e.Has |= KernelHasPort
		e.Port = uint16(r.IntN(1 << 16))
	}
	if maybe(r) {
		e.Has |= KernelHasRuleID
		e.RuleID = uint32(randomUint(r))
	}
	if maybe(r) {
		e.Has |= KernelHasFlags | KernelHasMode
		e.Flags, e.Mode = randomUint(r), randomUint(r)
		e.AccessMode = AccessMode(e.Flags)
	}
	if maybe(r) {
		e.Has |= KernelHasResolve
		e.Resolve = max(1, randomUint(r))
	}
	if maybe(r) {
		e.Has |= KernelHasReturn
		e.ReturnValue = randomInt(r)
		e.Status = pick(r, "", StatusSuccess, StatusError)
		if e.Pending() && maybe(r) {
			e.Has |= KernelHasConnectResult
			e.ConnectResult = int64(-r.IntN(MaxErrno + 1))
		}
	} else {
		e.Status = pick(r, "", StatusUnproven)
	}
	return e
}
