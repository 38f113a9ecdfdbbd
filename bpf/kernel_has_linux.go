//go:build amd64 || arm64

package bpf

import "github.com/cilium/ebpf/btf"

// enumHas reports whether a kernel's enum has a value.
func enumHas(kernel *btf.Spec, enum, value string) bool {
	var e *btf.Enum
	if typeByName(kernel, enum, &e) != nil {
		return false
	}
	for _, v := range e.Values {
		if v.Name == value {
			return true
		}
	}
	return false
}
