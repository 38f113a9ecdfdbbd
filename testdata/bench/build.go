//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/runner-evidence/runner/schemas"
)

const (
	server = `package main

import (
	"fmt"
	"net/http"
)

func main() {
	fmt.Println(http.ListenAndServe("127.0.0.1:0", http.NotFoundHandler()))
}
`
	hello = `package main

import "fmt"

func main() { fmt.Println("hello") }
`
)

// build measures a whole real build: the start of the runner and the archive included.
func (b *bench) build() error {
	dir := filepath.Join(b.dir, "program")
	what, source := "go build -a, net/http server", server
	if b.short {
		what, source = "go build -a, fmt only", hello
	}
	// The telemetry of the go command starts a process once a day, and one of the runs
	// would wait for it.
	files := map[string]string{"main.go": source, "go.mod": "module program\n\ngo 1.24\n", "config/go/telemetry/mode": "off\n"}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for k, v := range map[string]string{
		"GOCACHE": filepath.Join(b.dir, "gocache"), "XDG_CONFIG_HOME": filepath.Join(dir, "config"),
		"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOPROXY": "off", "CGO_ENABLED": "0",
	} {
		old, had := os.LookupEnv(k)
		os.Setenv(k, v)
		defer func() {
			if os.Setenv(k, old); !had {
				os.Unsetenv(k)
			}
		}()
	}
	argv := []string{"command", "go", "build", "-C", dir, "-a", "-o", "program", "."}
	if _, err := b.plain(argv...); err != nil {
		return err
	}
	lines := int64(0)
	c, err := b.compare(b.n(3, 1), argv, func(archive string) error {
		compiled := false
		rec, err := readRecord(archive, func(event uint32, value []byte) {
			compiled = compiled || event == schemas.EventOpenat && string(value) == filepath.Join(dir, "main.go")
		})
		if err != nil {
			return err
		}
		if lines = rec.lines; !compiled {
			return fmt.Errorf("the record does not name the program's source")
		}
		return rec.whole()
	})
	if err != nil {
		return err
	}
	own := median(c.own)
	b.table.add(c.row(what, &c.whole, atMost(1.03),
		fmt.Sprintf("private GOCACHE; %s lines; runner's own CPU %s, %.1f%% of the build's", thousands(lines), seconds(own), 100*own/median(c.cpu.plain))))
	r := c.loop.ratios()
	b.table.add(row{what: "  of it: only the build", plain: seconds(median(c.loop.plain)), measured: seconds(median(c.loop.measured)),
		ratio: times(median(r)), spread: span(r, "%.2f"), note: "without starting the runner and finishing the archive"})
	if b.short {
		return nil
	}
	known := func() (sample, error) { return sample{loop: median(c.loop.plain), loopCPU: median(c.cpu.plain)}, nil }
	return b.comparePeers("the same", 1, "openat,execve", known, argv)
}
