//go:build unix

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/stream"
)

// die ends a stand-in in the same way as a tool ends.
func die(code int, format string, a ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", a...)
	os.Exit(code)
}

func fakeHealth(runID, name string) schemas.StageHealth {
	return schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: runID, Stage: name,
		Filtered: map[string]uint64{}, Counters: map[string]uint64{}, Facts: map[string]string{}}
}

// fakeNormalize takes the flags that runner-exec passes to runner-normalize.
func fakeNormalize() {
	f := flag.NewFlagSet("runner-normalize", flag.ExitOnError)
	f.Bool("background", false, "")
	checksum := f.String("checksum", "", "")
	f.Bool("canonical-pids", false, "")
	f.Bool("filtered", false, "")
	f.Bool("processes", false, "")
	f.String("noise", "", "")
	f.String("drop", "", "")
	f.Bool("windows", false, "")
	f.Parse(os.Args[1:])
	fakeFilter("runner-normalize", *checksum, "kernel.raw", "kernel.normalized")
}

// fakeCorrelate reads its logs to their seal before the first kernel line, as the
// real one does, and writes the lines of the logs first.
func fakeCorrelate() {
	f := flag.NewFlagSet("runner-correlate", flag.ExitOnError)
	f.Bool("background", false, "")
	checksum := f.String("checksum", "", "")
	policy := f.String("policy", "", "")
	sdk := f.String("sdk", "", "")
	f.Parse(os.Args[1:])
	var front [][]byte
	for _, l := range [][2]string{{*policy, schemas.StreamPolicyLog}, {*sdk, schemas.StreamSDKLog}} {
		if l[0] == "" {
			continue
		}
		file, err := os.Open(l[0])
		if err != nil {
			die(5, "runner-correlate: error: %v", err)
		}
		r, err := stream.NewReader(file, l[1], l[1])
		for err == nil {
			var rec stream.Record
			if rec, err = r.Next(); err == nil {
				front = append(front, bytes.Clone(rec.Bytes))
			}
		}
		if r == nil || r.Trailer() == nil {
			die(3, "runner-correlate: error: %v", err)
		}
	}
	fakeFilter("runner-correlate", *checksum, "kernel.normalized", "run.joined", front...)
}

// fakeFilter copies a stream under another name and appends its health.
func fakeFilter(name, checksum, in, out string, front ...[]byte) {
	r, err := stream.NewReader(os.Stdin, "stdin", in)
	if err != nil {
		die(3, "%s: error: %v", name, err)
	}
	w, err := stream.NewWriter(os.Stdout, stream.Header{Stream: out, RunID: r.Header().RunID, Tool: name, Checksum: checksum})
	if err != nil {
		die(5, "%s: error: %v", name, err)
	}
	for _, line := range front {
		w.WriteRaw(line)
	}
	for {
		rec, err := r.Next()
		if r.Trailer() != nil {
			break
		}
		if err != nil {
			die(3, "%s: error: %v", name, err)
		}
		w.WriteRaw(rec.Bytes)
	}
	health := fakeHealth(r.Header().RunID, name)
	health.Notes = os.Args[1:]
	w.Write(health)
	if err := w.Seal(r.Trailer().Status); err != nil {
		die(5, "%s: error: %v", name, err)
	}
}

// fakePack writes the arguments of the pipeline and the joined stream's records
// to the archive's file.
func fakePack() {
	r, err := stream.NewReader(os.Stdin, "stdin", "run.joined")
	if err != nil {
		die(3, "runner-pack: error: %v", err)
	}
	var path string
	for _, a := range os.Args {
		if name, is := strings.CutPrefix(a, "-o="); is {
			path = name
		}
	}
	f, err := tool.CreateAtomic(path)
	if err != nil {
		die(5, "runner-pack: error: %v", err)
	}
	fmt.Fprintf(f, "%s\x00{\"run_id\":\"%s\"}\n", bundle.ManifestName, r.Header().RunID)
	for {
		rec, err := r.Next()
		if r.Trailer() != nil {
			break
		}
		if err != nil {
			f.Abort()
			die(3, "runner-pack: error: %v", err)
		}
		fmt.Fprintf(f, "%s\n", rec.Bytes)
	}
	if os.Getenv("FAKE_PACK") == "checksum" {
		f.Abort()
		die(5, "runner-pack: error: the checksum is %q", r.Header().Checksum)
	}
	if os.Getenv("FAKE_PACK") == "fail" {
		f.Abort()
		die(5, "runner-pack: error: no space left")
	}
	if err := f.Commit(); err != nil {
		die(5, "runner-pack: error: %v", err)
	}
	fmt.Fprintln(os.Stderr, "runner-pack: summary")
}

// probe prints what a command was given.
func probe() {
	if len(os.Args) > 1 && os.Args[1] == "wait" {
		// Prints which of the given signals arrive, until USR2 ends it.
		c := make(chan os.Signal, 16)
		signal.Notify(c, syscall.Signal(1), syscall.Signal(2), syscall.Signal(10), syscall.Signal(12), syscall.Signal(15))
		fmt.Println("waiting")
		for s := range c {
			fmt.Println(s)
			if s == syscall.Signal(12) {
				os.Exit(7)
			}
		}
	}
}
