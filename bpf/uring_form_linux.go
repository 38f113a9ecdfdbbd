//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// uringForm is how a kernel reports io_uring's requests: the program that fits the form of
// each tracepoint, and how a request holds a name.
type uringForm struct {
	submit, complete string   // programs of the io_uring object
	others           []string // likewise, of tracepoints that have one form
	names            string   // the type of the fields that hold names
}

// programs are those that fit, in the order in which they are attached.
func (f *uringForm) programs() []string {
	return append([]string{f.complete}, append(slices.Clone(f.others), f.submit)...)
}

// String is the fact io_uring_form.
func (f *uringForm) String() string {
	return strings.TrimPrefix(f.submit, "on_") + " " + strings.TrimPrefix(f.complete, "on_") + " " + f.names
}

// tracepointForm is one form of a tracepoint: its name, its parameters after the first,
// and the program that reads them.
type tracepointForm struct {
	name, params, program string
}

var (
	uringSubmits = []tracepointForm{
		{"io_uring_submit_req", "io_kiocb*", objects.UringProgOnSubmitReq},
		{"io_uring_submit_sqe", "io_kiocb* bool", objects.UringProgOnSubmitSqe},
	}
	uringCompletes = []tracepointForm{
		{"io_uring_complete", "io_ring_ctx* void* io_uring_cqe*", objects.UringProgOnCompleteCqe},
		{"io_uring_complete", "void* void* u64 s32 u32 u64 u64", objects.UringProgOnCompleteRes},
	}
	uringOthers = [][]tracepointForm{
		{{"io_uring_req_failed", "io_uring_sqe* io_kiocb* s32", objects.UringProgOnReqFailed}},
		{
			{"io_uring_queue_async_work", "io_kiocb* s32", objects.UringProgOnQueueAsync},
			{"io_uring_queue_async_work", "io_kiocb* bool", objects.UringProgOnQueueAsync}, // Linux 6.19
		},
		{{"io_uring_fail_link", "io_kiocb* io_kiocb*", objects.UringProgOnFailLink}},
	}
)

// uringNames are the fields of requests that hold a name.
var uringNames = [][2]string{
	{"io_open", "filename"}, {"io_unlink", "filename"}, {"io_mkdir", "filename"},
	{"io_rename", "oldpath"}, {"io_rename", "newpath"}, {"io_link", "oldpath"}, {"io_link", "newpath"},
}

// nameForms are the types of such a field that the object reads.
var nameForms = []string{"filename*", "delayed_filename"}

// uringFormOf chooses by the kernel's types. A program that expects other parameters than
// the tracepoint has would load all the same, and read wrong values (seen on 6.1).
func uringFormOf(kernel *btf.Spec) (*uringForm, error) {
	f := new(uringForm)
	var err error
	if f.submit, err = fittingProgram(kernel, uringSubmits); err != nil {
		return nil, err
	}
	if f.complete, err = fittingProgram(kernel, uringCompletes); err != nil {
		return nil, err
	}
	for _, forms := range uringOthers {
		program, err := fittingProgram(kernel, forms)
		if err != nil {
			return nil, err
		}
		f.others = append(f.others, program)
	}
	for _, n := range uringNames {
		form, err := memberForm(kernel, n[0], n[1])
		if err != nil {
			return nil, err
		}
		if !slices.Contains(nameForms, form) {
			return nil, fmt.Errorf("struct %s has its %s as %s, which this build does not know", n[0], n[1], form)
		}
		if !slices.Contains(strings.Fields(f.names), form) {
			f.names = strings.TrimSpace(f.names + " " + form)
		}
	}
	return f, nil
}

// fittingProgram is the program for the form that a tracepoint has here.
func fittingProgram(kernel *btf.Spec, forms []tracepointForm) (string, error) {
	var names, other []string
	for _, f := range forms {
		var t *btf.Typedef
		if err := typeByName(kernel, "btf_trace_"+f.name, &t); err != nil {
			names = append(names, f.name)
			continue
		}
		params, err := paramsOf(t)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
		if params == f.params {
			return f.program, nil
		}
		other = append(other, f.name+"("+params+")")
	}
	if len(other) > 0 {
		return "", fmt.Errorf("this build does not know the form %s", strings.Join(slices.Compact(other), ", "))
	}
	return "", fmt.Errorf("no tracepoint %s", strings.Join(slices.Compact(names), " or "))
}

// paramsOf writes the parameters of a tracepoint after the first, which is the same for all.
func paramsOf(t *btf.Typedef) (string, error) {
	p, ok := t.Type.(*btf.Pointer)
	if !ok {
		return "", errors.New("not a function pointer")
	}
	f, ok := p.Target.(*btf.FuncProto)
	if !ok || len(f.Params) == 0 {
		return "", errors.New("not a tracepoint's function")
	}
	var list []string
	for _, param := range f.Params[1:] {
		list = append(list, typeForm(param.Type))
	}
	return strings.Join(list, " "), nil
}

// memberForm writes the type of a struct's member.
func memberForm(kernel *btf.Spec, name, member string) (string, error) {
	var s *btf.Struct
	if err := typeByName(kernel, name, &s); err != nil {
		return "", fmt.Errorf("no struct %s", name)
	}
	for _, m := range s.Members {
		if m.Name == member {
			return typeForm(m.Type), nil
		}
	}
	return "", fmt.Errorf("struct %s has no %s", name, member)
}

// typeForm writes a type by what decides how it is read: a pointer by what it leads to, a
// number by its size and sign, all else by its name.
func typeForm(t btf.Type) string {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Pointer:
		if _, void := btf.UnderlyingType(t.Target).(*btf.Void); void {
			return "void*"
		}
		return btf.UnderlyingType(t.Target).TypeName() + "*"
	case *btf.Int:
		switch {
		case t.Encoding&btf.Bool != 0:
			return "bool"
		case t.Encoding&btf.Signed != 0:
			return fmt.Sprintf("s%d", 8*t.Size)
		}
		return fmt.Sprintf("u%d", 8*t.Size)
	default:
		return t.TypeName()
	}
}
