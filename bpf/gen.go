package bpf

// The objects are committed, so that building needs no compiler for BPF. Flags
// and the pinned compiler come from the Makefile (make generate).

//go:generate go tool bpf2go -tags linux -target amd64,arm64 kernel kernel.bpf.c
//go:generate go tool bpf2go -tags linux -target amd64,arm64 sock sock.bpf.c
//go:generate go tool bpf2go -tags linux -target amd64,arm64 unix unix.bpf.c
//go:generate go tool bpf2go -tags linux -target amd64,arm64 uring uring.bpf.c
//go:generate go tool bpf2go -tags linux -target amd64,arm64 uringcount uringcount.bpf.c
//go:generate go tool bpf2go -tags linux -target amd64,arm64 rules rules.bpf.c
//go:generate go tool bpf2go -tags linux -target amd64,arm64 rulesunix rulesunix.bpf.c
