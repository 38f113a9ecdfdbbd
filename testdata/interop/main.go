// Interop checks with programs of others that what the tools write is what these read, and the other way
// round: cosign signs and verifies statements, an OpenTelemetry Collector takes what runner-otel sends, OPA
// compiles and evaluates the policies of testdata/fixtures/rego. It builds them once from the Go module
// proxy, into the user's cache: that takes many minutes.
//
//	make interop
//	go run ./testdata/interop opa           OPA only
//	go run ./testdata/interop opa -update   and writes its modules and results again
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
	fmt.Println("interop: all hold")
}

// check is one comparison: its folder, the tools and the programs of others.
type check struct {
	dir, tools, cache string
	archives          []string // that runner-verify calls valid
}

func run(args []string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	tools, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "interop-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := &check{dir: dir, tools: tools, cache: filepath.Join(cache, "runner-interop")}
	if len(args) > 0 && args[0] == "opa" {
		return c.opa(args[1:]...)
	}
	if err := c.pack(); err != nil {
		return err
	}
	// One that fails, or cannot be had, does not hide the other.
	return errors.Join(c.opa(), c.cosign(), c.collector())
}

// pack makes the archives of the recorded runs.
func (c *check) pack() error {
	runs, err := filepath.Glob("testdata/runs/*/3-joined.ndjson")
	if err != nil {
		return err
	}
	for _, joined := range runs {
		archive := c.file(filepath.Base(filepath.Dir(joined)) + ".tar.gz")
		if _, err := c.tool("runner-pack", "-o", archive, joined); err != nil {
			continue // a run that was recorded to be refused
		}
		if _, err := c.tool("runner-verify", archive); err == nil {
			c.archives = append(c.archives, archive)
		}
	}
	if len(c.archives) < 10 {
		return fmt.Errorf("%d of %d recorded runs verify", len(c.archives), len(runs))
	}
	return nil
}

func (c *check) file(name string) string { return filepath.Join(c.dir, name) }

func (c *check) tool(name string, args ...string) (string, error) {
	return c.call(filepath.Join(c.tools, name), args...)
}

// call runs a program. What it says is in the error.
func (c *check) call(path string, args ...string) (string, error) {
	var out, words strings.Builder
	p := exec.Command(path, args...)
	p.Env, p.Stdout, p.Stderr = append(os.Environ(), "COSIGN_PASSWORD="), &out, &words
	if err := p.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(path), strings.Join(args, " "), err, words.String())
	}
	return out.String(), nil
}

// build runs a command that takes long, with what nothing else needs of the processor.
func (c *check) build(w io.Writer, env []string, args ...string) error {
	if path, err := exec.LookPath("nice"); err == nil {
		args = append([]string{path, "-n", "19"}, args...)
	}
	fmt.Println("interop: building:", strings.Join(args, " "))
	p := exec.Command(args[0], args[1:]...)
	p.Dir, p.Env, p.Stdout, p.Stderr = c.cache, append(os.Environ(), env...), w, w
	if err := p.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return nil
}
