package schemas

import (
	"path"
	"slices"
	"strings"
)

// Engine is a program that starts containers (STREAMS.md, "Container engines"). A container
// that it starts elsewhere is not in the record, which is then not complete.
type Engine struct {
	Name     string
	Sockets  []string // how the names of its daemon's sockets end
	Programs []string // its programs, without directories
	Starts   []string // what it is told so that it starts a container; empty: anything
	Stays    []string // options with which it leaves the container in the cgroup
	Do       string   // what to type so that the container is in the record
}

// What to type for containers that a daemon starts, and for runtimes that know no other way.
const (
	engineBeside = "measure the container's own cgroup: runner-capture --cgroup DIR, with a container whose cgroup is made below DIR"
	engineDocker = "measure the container's own cgroup: runner-capture --cgroup DIR, with a container made by --cgroup-parent"
	engineCtr    = "measure the container's own cgroup: runner-capture --cgroup DIR, with a container made by ctr run --cgroup or nerdctl run --cgroup-parent"
	engineRunc   = "runc makes the container's cgroup beside its own: give it one inside of this: sh -c 'c=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup); mkdir $c/runc; echo $$ >$c/runc/cgroup.procs; exec runc run ID'"
	engineCrun   = "keep the container in this one: crun --cgroup-manager=disabled run ID"
)

// Engines are all that are known, by name.
var Engines = [...]Engine{
	{Name: "buildkit", Sockets: []string{"buildkitd.sock"}, Programs: []string{"buildctl"}, Do: engineBeside},
	{Name: "containerd", Sockets: []string{"containerd.sock"}, Programs: []string{"ctr", "nerdctl"}, Do: engineCtr},
	{Name: "crio", Sockets: []string{"crio.sock"}, Programs: []string{"crictl"}, Do: engineBeside},
	{Name: "crun", Programs: []string{"crun"}, Starts: []string{"run", "create", "exec", "restore"},
		Stays: []string{"--cgroup-manager=disabled"}, Do: engineCrun},
	{Name: "docker", Sockets: []string{"docker.sock"}, Programs: []string{"docker", "docker-compose"}, Do: engineDocker},
	{Name: "incus", Sockets: []string{"incus/unix.socket"}, Programs: []string{"incus"}, Do: engineBeside},
	{Name: "lxd", Sockets: []string{"lxd/unix.socket"}, Programs: []string{"lxc"}, Do: engineBeside},
	{Name: "podman", Sockets: []string{"podman.sock"}, Programs: []string{"podman"},
		Starts: []string{"run", "start", "exec", "build", "create", "play", "kube", "restart"},
		Stays:  []string{"--cgroups=disabled", "--cgroups=split"},
		Do:     "keep the container in this one: podman run --cgroups=disabled, or --cgroups=split for limits"},
	{Name: "runc", Programs: []string{"runc"}, Starts: []string{"run", "create", "exec", "restore"}, Do: engineRunc},
}

// EngineOfProgram is the engine that a program belongs to, by the last part of its name, or nil.
func EngineOfProgram(name string) *Engine {
	return findEngine(func(e *Engine) bool { return slices.Contains(e.Programs, path.Base(name)) })
}

// EngineOfSocket is the engine whose daemon listens at an endpoint, or nil.
func EngineOfSocket(endpoint string) *Engine {
	name, unix := strings.CutPrefix(endpoint, "unix:")
	if !unix {
		return nil
	}
	return findEngine(func(e *Engine) bool {
		return slices.ContainsFunc(e.Sockets, func(end string) bool { return name == end || strings.HasSuffix(name, "/"+end) })
	})
}

func findEngine(is func(*Engine) bool) *Engine {
	if i := slices.IndexFunc(Engines[:], func(e Engine) bool { return is(&e) }); i >= 0 {
		return &Engines[i]
	}
	return nil
}

// Leaves reports whether the engine's program starts a container outside of its own cgroup
// when it is called with these arguments.
func (e *Engine) Leaves(args []string) bool {
	starts := len(args) > 0 && len(e.Starts) == 0
	for i, a := range args {
		starts = starts || slices.Contains(e.Starts, a)
		if i > 0 && slices.Contains(e.Stays, args[i-1]+"="+a) || slices.Contains(e.Stays, a) {
			return false
		}
	}
	return starts
}

// isEngines reports whether a value is names of engines, each once and in their order.
func isEngines(value string) bool {
	last := -1
	for name := range strings.SplitSeq(value, ",") {
		i := slices.IndexFunc(Engines[:], func(e Engine) bool { return e.Name == name })
		if i <= last {
			return false
		}
		last = i
	}
	return true
}
