package schemas

import (
	"slices"
	"strings"
	"testing"
)

// TestEngines: the table is sorted, and nothing is in it twice or without advice.
func TestEngines(t *testing.T) {
	seen := map[string]bool{}
	for i, e := range Engines {
		if i > 0 && Engines[i-1].Name >= e.Name || e.Do == "" || len(e.Programs) == 0 {
			t.Errorf("engine %q", e.Name)
		}
		for _, name := range slices.Concat(e.Sockets, e.Programs) {
			if seen[name] || e.Do == "" {
				t.Errorf("%s: %q is there twice", e.Name, name)
			}
			seen[name] = true
		}
	}
	for name, want := range map[string]string{"/usr/bin/podman": "podman", "crun": "crun", "detached:/usr/bin/crun": "crun", "/bin/podmans": "", "": "", "/opt/docker/x": ""} {
		if got := EngineOfProgram(name); got == nil && want != "" || got != nil && got.Name != want {
			t.Errorf("program %q: %v, expected %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"unix:/run/docker.sock": "docker", "unix:docker.sock": "docker", "unix:/run/user/1000/podman/podman.sock": "podman",
		"unix:/var/lib/incus/unix.socket": "incus", "unix:/run/my-docker.sock": "", "/run/docker.sock": "", "unix:@docker.sock": "", "unix:/run/unix.socket": "", "1.2.3.4:80": ""} {
		if got := EngineOfSocket(name); got == nil && want != "" || got != nil && got.Name != want {
			t.Errorf("socket %q: %v, expected %q", name, got, want)
		}
	}
}

// TestEngineLeaves: an engine is named before the start only if a container would leave.
func TestEngineLeaves(t *testing.T) {
	for call, want := range map[string]bool{
		"podman run x": true, "podman --log-level info run x": true, "podman ps": false, "podman": false, "podman run --cgroups=disabled x": false,
		"podman run --cgroups split x": false, "podman run --cgroups=enabled x": true, "crun --cgroup-manager=disabled run x": false, "crun run x": true,
		"crun list": false, "crun --cgroup-manager disabled run x": false, "docker": false, "docker compose up": true, "docker run x": true, "runc run x": true,
	} {
		args := strings.Fields(call)
		if got := EngineOfProgram(args[0]).Leaves(args[1:]); got != want {
			t.Errorf("%s: %v", call, got)
		}
	}
}
