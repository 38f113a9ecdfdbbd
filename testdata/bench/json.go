//go:build linux

package main

import (
	"encoding/json"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// result is the table for a machine, with what the numbers depend on.
type result struct {
	Version  string            `json:"version"` // of the tools
	Date     string            `json:"date"`
	Kernel   string            `json:"kernel"`
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	Meltdown string            `json:"meltdown"` // what the kernel does about it: with page tables apart, each call costs more
	Load     string            `json:"load_average"`
	Go       string            `json:"go"`
	Peers    map[string]string `json:"peers"` // path, or "" if it is not installed
	Short    bool              `json:"short"`
	Newest   *newest           `json:"newest,omitempty"` // where the values of the newest kernel are from
	Rows     []resultRow       `json:"rows"`
}

// newest names the kernel whose recorded values the rows have.
type newest struct {
	Kernel  string `json:"kernel"`
	Release string `json:"release"`
	Date    string `json:"date"`
	Version string `json:"version"`
	Machine string `json:"machine"`
}

type resultRow struct {
	What     string `json:"what"`
	Plain    string `json:"plain,omitempty"`
	Measured string `json:"measured,omitempty"`
	Ratio    string `json:"ratio,omitempty"`
	Before   string `json:"before,omitempty"`
	Spread   string `json:"spread,omitempty"`
	CPU      string `json:"cpu,omitempty"`
	Newest   string `json:"newest,omitempty"`
	Target   string `json:"target,omitempty"`
	Verdict  string `json:"verdict,omitempty"`
	Note     string `json:"note,omitempty"`
}

func (b *bench) writeJSON(w io.Writer) error {
	var u syscall.Utsname
	syscall.Uname(&u)
	load, _ := os.ReadFile("/proc/loadavg")
	version, err := b.version()
	if err != nil {
		return err
	}
	r := result{Version: version, Date: time.Now().UTC().Format(time.DateOnly), Kernel: cstring(u.Release[:]) + " " + runtime.GOARCH,
		CPU: cpuModel(), Cores: runtime.NumCPU(), Meltdown: meltdown(), Load: strings.TrimSpace(string(load)), Go: runtime.Version(), Peers: map[string]string{}, Short: b.short, Rows: []resultRow{}}
	for _, p := range b.peers() {
		r.Peers[p.name] = p.path
	}
	if n := b.newest; n.Kernel != "" {
		r.Newest = &newest{n.Kernel, n.Release, n.Date, n.Version, n.Machine}
	}
	for _, t := range b.table.rows {
		r.Rows = append(r.Rows, resultRow{t.what, t.plain, t.measured, t.ratio, t.before, t.spread, t.cpu, t.newest, t.target, t.verdict, t.note})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// version is what the tools say that they are.
func (b *bench) version() (string, error) {
	v, err := b.execute(nil, b.tool("runner-exec"), "--version")
	return strings.TrimSpace(v.out), err
}

// meltdown is what the kernel does about that weakness of processors, in its own words.
func meltdown() string {
	b, err := os.ReadFile("/sys/devices/system/cpu/vulnerabilities/meltdown")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// cpuModel is the kernel's name for the processor.
func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
