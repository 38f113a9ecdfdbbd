// Package bpf holds the probes and their loader: it turns a cgroup into a
// sequence of records and says exactly what it could not see. Only runner-capture
// links it.
package bpf
