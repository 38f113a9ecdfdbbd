//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
)

// ringTypes are the few types of a kernel by which io_uring's programs are chosen.
type ringTypes struct {
	submit, complete string
	submitParams     []btf.Type
	completeParams   []btf.Type
	name             btf.Type // of every field that holds a name
	without          string   // a struct or tracepoint that this kernel does not have
}

var (
	u64Type  = &btf.Typedef{Name: "u64", Type: &btf.Int{Name: "long long unsigned int", Size: 8}}
	u32Type  = &btf.Int{Name: "unsigned int", Size: 4}
	s32Type  = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	boolType = &btf.Typedef{Name: "bool", Type: &btf.Int{Name: "_Bool", Size: 1, Encoding: btf.Bool}}
	voidPtr  = &btf.Pointer{Target: (*btf.Void)(nil)}
	filename = &btf.Struct{Name: "filename", Size: 8}
	delayed  = &btf.Struct{Name: "delayed_filename", Size: 8, Members: []btf.Member{{Name: "__incomplete_filename", Type: &btf.Pointer{Target: filename}}}}
)

func to(name string) btf.Type { return &btf.Pointer{Target: &btf.Struct{Name: name, Size: 8}} }

func (k ringTypes) spec(t *testing.T) *btf.Spec {
	t.Helper()
	var types []btf.Type
	trace := func(name string, params []btf.Type) {
		f := &btf.FuncProto{Return: (*btf.Void)(nil), Params: []btf.FuncParam{{Type: voidPtr}}}
		for _, p := range params {
			f.Params = append(f.Params, btf.FuncParam{Type: p})
		}
		types = append(types, &btf.Typedef{Name: "btf_trace_" + name, Type: &btf.Pointer{Target: f}})
	}
	trace(k.submit, k.submitParams)
	trace(k.complete, k.completeParams)
	for name, params := range map[string][]btf.Type{
		"io_uring_req_failed":       {to("io_uring_sqe"), to("io_kiocb"), s32Type},
		"io_uring_queue_async_work": {to("io_kiocb"), boolType},
		"io_uring_fail_link":        {to("io_kiocb"), to("io_kiocb")},
	} {
		if name != k.without {
			trace(name, params)
		}
	}
	requests := map[string]*btf.Struct{}
	for _, n := range uringNames {
		s := requests[n[0]]
		if s == nil && n[0] != k.without {
			s = &btf.Struct{Name: n[0], Size: 64}
			requests[n[0]] = s
			types = append(types, s)
		}
		if s != nil {
			s.Members = append(s.Members, btf.Member{Name: n[1], Type: k.name, Offset: btf.Bits(64 * len(s.Members))})
		}
	}
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Marshal(nil, &btf.MarshalOptions{Order: binary.NativeEndian})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// The forms are those of the named kernels.
func TestUringForm(t *testing.T) {
	submitReq, submitSqe := []btf.Type{to("io_kiocb")}, []btf.Type{to("io_kiocb"), boolType}
	asCqe := []btf.Type{to("io_ring_ctx"), voidPtr, to("io_uring_cqe")}
	asResult := []btf.Type{voidPtr, voidPtr, u64Type, s32Type, u32Type, u64Type, u64Type}
	old := []btf.Type{voidPtr, voidPtr, &btf.Int{Name: "unsigned char", Size: 1}, u64Type, u32Type, boolType, boolType}
	pointer := &btf.Pointer{Target: filename}
	for _, c := range []struct {
		what string
		k    ringTypes
		want string // the form, or a part of the error
	}{
		{"6.1", ringTypes{"io_uring_submit_sqe", "io_uring_complete", submitSqe, asResult, pointer, ""}, "submit_sqe complete_res filename*"},
		{"6.12", ringTypes{"io_uring_submit_req", "io_uring_complete", submitReq, asResult, pointer, ""}, "submit_req complete_res filename*"},
		{"6.16", ringTypes{"io_uring_submit_req", "io_uring_complete", submitReq, asCqe, pointer, ""}, "submit_req complete_cqe filename*"},
		{"7.0", ringTypes{"io_uring_submit_req", "io_uring_complete", submitReq, asCqe, delayed, ""}, "submit_req complete_cqe delayed_filename"},
		{"5.10", ringTypes{"io_uring_submit_sqe", "io_uring_complete", old, asResult, pointer, ""}, "the form io_uring_submit_sqe(void* void* u8 u64 u32 bool bool)"},
		{"none", ringTypes{"io_uring_create", "io_uring_complete", submitReq, asCqe, pointer, ""}, "no tracepoint io_uring_submit_req or io_uring_submit_sqe"},
		{"no completions", ringTypes{"io_uring_submit_req", "io_uring_create", submitReq, asCqe, pointer, ""}, "no tracepoint io_uring_complete"},
		{"an unsigned result", ringTypes{"io_uring_submit_req", "io_uring_complete", submitReq, slices.Insert(slices.Clone(asResult[:3]), 3, btf.Type(u32Type)), pointer, ""}, "does not know the form io_uring_complete(void* void* u64 u32)"},
		{"a name to come", ringTypes{"io_uring_submit_req", "io_uring_complete", submitReq, asCqe, to("other_name"), ""}, "struct io_open has its filename as other_name*"},
		{"no links", ringTypes{"io_uring_submit_req", "io_uring_complete", submitReq, asCqe, pointer, "io_link"}, "no struct io_link"},
		{"no failures", ringTypes{"io_uring_submit_req", "io_uring_complete", submitReq, asCqe, pointer, "io_uring_req_failed"}, "no tracepoint io_uring_req_failed"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f, err := uringFormOf(c.k.spec(t))
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, expected %q", err, c.want)
				}
			} else if f.String() != c.want {
				t.Errorf("form %q, expected %q", f, c.want)
			}
		})
	}
}
