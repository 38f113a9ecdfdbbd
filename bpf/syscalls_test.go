//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// kernelsTypes are the files with the types of this kernel and, with typesDir, of others.
func kernelsTypes(t *testing.T) map[string]string {
	kernels := map[string]string{"here": "/sys/kernel/btf/vmlinux"}
	dir := os.Getenv(typesDir)
	if dir == "" {
		testkit.Note(t, "the types of other kernels", typesDir+" names no folder with them")
		return kernels
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.btf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s=%s holds no .btf file: %v", typesDir, dir, err)
	}
	for _, f := range files {
		kernels[strings.TrimSuffix(filepath.Base(f), ".btf")] = f
	}
	return kernels
}

// callFunction is a function that carries out a system call.
var callFunction = regexp.MustCompile(`^__(?:x64|ia32|arm64)_(?:compat_)?sys_(.+)$`)

// TestKernelCalls: every system call and every io_uring operation of this kernel has its place in
// the table of what the record says of it.
func TestKernelCalls(t *testing.T) {
	const whatToDo = "schemas/calls_table.go does not have it: give it the operation that tells it, the blind spot that it belongs to, " +
		"or the row of what a record is not about; then go test ./schemas -update"
	for name, file := range kernelsTypes(t) {
		t.Run(name, func(t *testing.T) {
			kernel, err := btf.LoadSpec(file)
			if errors.Is(err, os.ErrNotExist) {
				testkit.Missing(t, "this kernel's types", err)
			}
			testkit.Must(t, err)
			calls := map[string]bool{}
			for typ, err := range kernel.All() {
				testkit.Must(t, err)
				switch typ := typ.(type) {
				case *btf.Func:
					if m := callFunction.FindStringSubmatch(typ.Name); m != nil && !calls[m[1]] {
						calls[m[1]] = true
						if _, ok := schemas.CanonicalCall(m[1]); !ok {
							t.Errorf("the kernel has the system call %s: %s", m[1], whatToDo)
						}
					}
				case *btf.Enum:
					for _, v := range typ.Values {
						op, ok := strings.CutPrefix(v.Name, "IORING_OP_")
						if typ.Name == "io_uring_op" && ok && op != "LAST" && schemas.CoverageOfOpcode(op) == nil {
							t.Errorf("the kernel has the io_uring operation %s: %s", op, whatToDo)
						}
					}
				}
			}
			if len(calls) < 300 {
				t.Errorf("found only %d system calls in the kernel's types", len(calls))
			}
		})
	}
}

// TestProbedCalls: the system calls in the objects' tables are those that the specification says
// are recorded, by the same operation, under the numbers of the architecture.
func TestProbedCalls(t *testing.T) {
	sys, err := build.Import("golang.org/x/sys/unix", ".", build.FindOnly)
	testkit.Must(t, err)
	for _, x := range []struct{ object, table, arch string }{
		{"x86", "native", "amd64"}, {"x86", "compat", "386"}, {"arm64", "native", "arm64"}, {"arm64", "compat", "arm"},
	} {
		probed := callTable(t, x.object, x.table)
		text, err := os.ReadFile(filepath.Join(sys.Dir, "zsysnum_linux_"+x.arch+".go"))
		testkit.Must(t, err)
		for _, m := range regexp.MustCompile(`SYS_([A-Z0-9_]+)\s+= (\d+)`).FindAllStringSubmatch(string(text), -1) {
			call := strings.ToLower(m[1])
			number, err := strconv.Atoi(m[2])
			if err != nil || number >= len(probed) {
				continue // numbers of ARM that no architecture shares
			}
			want := ""
			if c := schemas.CoverageOfCall(call); c != nil && c.Op != schemas.OpExit {
				want = c.Op
			}
			if (x.table == "compat") && (want == schemas.OpSendmsg || want == schemas.OpSendmmsg) {
				want = "" // counted under compat_unmapped
			}
			if probed[number] != want {
				t.Errorf("%s: the probes tell %s as %q, the table of every call says %q", x.arch, call, probed[number], want)
			}
			probed[number] = ""
		}
		for number, op := range probed {
			if op != "" {
				t.Errorf("%s: the probes tell %s of number %d, which no call has", x.arch, op, number)
			}
		}
	}
}

// callTable is the operation by number of a call in an object's table.
func callTable(t *testing.T, object, table string) []string {
	rows := callRows(t, object, table)
	ops := make([]string, len(rows))
	for i, d := range rows {
		if d[1] != classGuard && d[1] != classUnmapped && d[1] != classReceive && d[1] != classChange {
			ops[i] = opNames[d[0]]
		}
	}
	return ops
}

// callRows are the rows of an object's table by number of the call: each a struct desc, which is the operation, the class,
// and six arguments.
func callRows(t *testing.T, object, table string) (rows [][8]byte) {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec("internal/objects/kernel_" + object + "_bpfel.o")
	testkit.Must(t, err)
	for _, m := range spec.Maps {
		section, ok := m.Value.(*btf.Datasec)
		if !ok {
			continue
		}
		for _, v := range section.Vars {
			if v.Type.TypeName() != "calls" {
				continue
			}
			for row := range slices.Chunk(m.Contents[0].Value.([]byte)[v.Offset:v.Offset+v.Size], 8) {
				rows = append(rows, [8]byte(row))
			}
			if half := len(rows) / 2; table == "native" {
				return rows[:half]
			} else {
				return rows[half:]
			}
		}
	}
	t.Fatalf("the object has no table %s", table)
	return nil
}

// Classes of table.h that make no line.
const (
	classGuard    = 5
	classUnmapped = 7
	classReceive  = 9
	classChange   = 10
)
