package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// TestEnginesSeen: an engine's daemon counts if it is asked and is not the scope's own, and
// an engine's program if tasks left.
func TestEnginesSeen(t *testing.T) {
	for _, c := range []struct {
		events string // connect ADDR, fail ADDR, bind ADDR, exec PATH
		left   uint64
		fact   string
		said   string
	}{
		{"", 0, "", ""},
		{"", 2, "", "2 tasks left"},
		{"exec /usr/bin/podman,exec /usr/bin/crun", 0, "", ""},
		{"exec /usr/bin/podman,exec /usr/bin/crun", 1, "crun podman", "podman run --cgroups=disabled"},
		{"exec /usr/bin/crun,exec /usr/bin/crun", 1, "crun", "crun --cgroup-manager=disabled"},
		{"connect unix:/run/docker.sock,exec /usr/bin/docker", 0, "docker", "docker was asked"},
		{"connect unix:/run/docker.sock,exec /usr/bin/crun", 1, "crun docker", "docker was asked"},
		{"fail unix:/run/docker.sock", 0, "", ""},
		{"connect unix:/run/other.sock,connect 127.0.0.1:2375", 0, "", ""},
		{"bind unix:/tmp/docker.sock,connect unix:/tmp/docker.sock", 0, "", ""},
		{"connect unix:/tmp/docker.sock,bind unix:/tmp/docker.sock", 0, "", ""},
		{"bind unix:/tmp/docker.sock,connect unix:/run/docker.sock", 0, "docker", "docker was asked"},
		{"connect unix:/run/podman/podman.sock,connect unix:/run/docker.sock", 0, "docker podman", "podman was asked"},
	} {
		n := newEngines()
		for text := range strings.SplitSeq(c.events, ",") {
			if what, name, ok := strings.Cut(text, " "); ok {
				seen(&n, what, name)
			}
		}
		var said bytes.Buffer
		n.tell(&tool.Env{Stderr: &said}, c.left)
		if got := n.fact(c.left > 0); got != c.fact || !strings.Contains(said.String(), c.said) || (c.said == "") != (said.Len() == 0) {
			t.Errorf("%s, %d left: fact %q, expected %q; said %q", c.events, c.left, got, c.fact, &said)
		}
	}
}

// TestEnginesBounded: however many sockets a program makes, what is remembered is bounded,
// and no daemon is forgotten.
func TestEnginesBounded(t *testing.T) {
	n := newEngines()
	for i := range 10 * maxEngineNames {
		seen(&n, "bind", fmt.Sprintf("unix:/tmp/%d/docker.sock", i))
	}
	seen(&n, "connect", "unix:/run/podman/podman.sock")
	if len(n.bound)+len(n.asked) > maxEngineNames || n.fact(false) != "podman" {
		t.Errorf("%d names are remembered, fact %q", len(n.bound)+len(n.asked), n.fact(false))
	}
}

func seen(n *engines, what, name string) {
	e := schemas.RawEvent{Op: schemas.OpConnect, Has: schemas.HasRet, Path: []byte(name), Addr: []byte(name)}
	switch what {
	case "exec":
		n.executed(&e)
		return
	case "bind":
		e.Op = schemas.OpBind
	case "fail":
		e.Ret = -2
	}
	n.endpoint(&e)
}
