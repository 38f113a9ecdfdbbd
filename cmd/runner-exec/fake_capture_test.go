//go:build linux

package main

import (
	"bufio"
	"errors"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// fakeCapture accepts runner-capture's flags and control lines, and follows the
// cgroup, but has no hooks. FAKE_CAPTURE makes it fail in a chosen way.
func fakeCapture() {
	f := flag.NewFlagSet("runner-capture", flag.ExitOnError)
	dir := f.String("cgroup", "", "")
	id := f.String("run-id", "", "")
	grace := f.Duration("grace", 0, "")
	ready := f.Int("ready-fd", -1, "")
	f.Bool("supervised", false, "")
	f.Bool("remove-cgroup", false, "")
	f.Bool("make-cgroup", false, "")
	f.String("ring-size", "", "")
	f.String("spool-size", "", "")
	f.String("redundant", "", "")
	f.String("probes", "", "")
	f.String("argv", "", "")
	f.String("argv-key", "", "")
	f.String("without", "", "")
	f.String("file-mechanism", "", "")
	checksum := f.String("checksum", "", "")
	sets := []*string{f.String("network-rules", "", ""), f.String("file-rules", "", "")}
	f.Bool("v", false, "")
	f.Parse(os.Args[1:])
	if err := os.Mkdir(*dir, 0o755); err != nil {
		die(4, "runner-capture: error: %v", err)
	}

	clean := func() {
		cgroup.Kill(*dir, 5*time.Second)
		cgroup.Remove(*dir)
	}
	signal.Ignore(syscall.SIGPIPE) // otherwise SIGPIPE would end it and leave the command unobserved
	how := os.Getenv("FAKE_CAPTURE")
	notes := []string{}
	for _, file := range sets {
		if *file == "" {
			continue
		}
		b, err := os.ReadFile(*file)
		if err != nil {
			clean()
			die(5, "runner-capture: error: %v", err)
		}
		notes = append(notes, string(b)) // so that a test sees what arrived
	}
	if how == "cannot" {
		clean()
		die(4, "runner-capture: error: no BTF")
	}
	if how == "die" {
		die(1, "runner-capture: error: attach refused")
	}
	if how == "slow" {
		os.WriteFile("slow", nil, 0o600)
		go func() {
			time.Sleep(5 * time.Second)
			os.Exit(9)
		}()
		bufio.NewReader(os.Stdin).ReadByte()
		clean()
		os.Exit(5)
	}
	switch how { // the cgroup goes away between ready and the command
	case "gone": // with its runner-capture, which is known to have ended later
		clean()
		time.AfterFunc(time.Second, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	case "removed": // by somebody else
		clean()
	}
	w, err := stream.NewWriter(os.Stdout, stream.Header{Stream: schemas.StreamRaw, RunID: *id, Tool: "runner-capture", Checksum: *checksum})
	if err != nil {
		clean()
		die(5, "runner-capture: error: %v", err)
	}
	fd := os.NewFile(uintptr(*ready), "ready")
	fd.WriteString(`{"schema":"` + schemas.SchemaReady + "\"}\n")
	fd.Close()

	sc := bufio.NewScanner(os.Stdin)
	sc.Buffer(nil, 2<<20)
	finished := false
	for sc.Scan() {
		var c schemas.Control
		if err := schemas.Unmarshal(sc.Bytes(), &c); err != nil {
			clean()
			die(5, "runner-capture: error: %v", err)
		}
		if c.Op == "started" {
			w.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: *id, Type: "run_started",
				AgentShim: c.AgentShim, Command: c.Command, EnvKeys: c.EnvKeys})
			w.Flush()
			continue
		}
		finished = true
		w.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: *id, Seq: 1, Type: "run_finished",
			ExitCode: c.ExitCode, Signal: c.Signal, Success: c.ExitCode != nil && *c.ExitCode == 0})
		break
	}
	if !finished {
		clean()
		die(5, "runner-capture: error: supervisor lost")
	}
	go func() { // from here on the pipe only shows that there is a supervisor
		sc.Scan()
		clean()
		die(5, "runner-capture: error: supervisor lost")
	}()
	for end := time.Now().Add(*grace); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if p, err := cgroup.Populated(*dir); err != nil || !p {
			break
		}
	}
	clean()
	if _, err := os.Stat(filepath.Dir(*dir)); err != nil {
		die(5, "runner-capture: error: %v", err)
	}
	health := fakeHealth(*id, "runner-capture")
	health.Notes = notes
	w.Write(health)
	if err := w.Seal(schemas.StatusComplete); err != nil {
		if errors.Is(err, syscall.EPIPE) { // as the real one, without a word
			tool.EndUnread()
		}
		die(5, "runner-capture: error: %v", err)
	}
	if how == "linger" {
		os.WriteFile("sealed", nil, 0o600)
		time.Sleep(20 * time.Second)
	}
}
