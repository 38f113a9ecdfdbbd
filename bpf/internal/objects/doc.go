// Package objects holds the compiled probes and the Go names of their programs, maps
// and types. All other files here are generated from bpf/probes (make generate) and
// committed, so that building needs no compiler for BPF. objects.sha256 has the digests
// of sources and results: a test finds a source that was changed without them.
package objects
