//go:build linux

// Hostile attacks the observer from inside of the cgroup that it observes. It runs each attack
// in a measured run of its own, looks at what became of the record, and prints one line of
// JSON for each.
//
//	hostile check BIN [--harden] [--gentle|--rude] [--short] [NAME…]
//	                               runs the attacks as root; --gentle leaves out those that touch the machine,
//	                               --rude all others, --short all but one of each sort,
//	                               of which it tries some with --harden too
//	hostile merge FILE             puts lines from stdin into a file of results
//	hostile list                   prints the attacks
//	hostile attack NAME DIR        is the measured program
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	args := os.Args[1:]
	switch {
	case len(args) >= 2 && args[0] == "check":
		os.Exit(check(args[1], args[2:]))
	case len(args) == 1 && args[0] == "list":
		for _, a := range attacks {
			fmt.Printf("%s\t%s\n", a.name, a.what)
		}
	case len(args) == 2 && args[0] == "merge":
		if err := merge(args[1], os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "hostile: error:", err)
			os.Exit(1)
		}
	case len(args) == 3 && args[0] == "attack":
		measured(args[1], args[2])
	case len(args) >= 2 && args[0] == "_act":
		act(args[1], "child")
	case len(args) >= 3 && args[0] == "_late":
		time.Sleep(1500 * time.Millisecond)
		act(args[1], args[2])
	case len(args) == 3 && args[0] == "_below":
		if below(args[1], len(args[2])) != nil {
			os.Exit(1)
		}
	case len(args) >= 2 && args[0] == "_stay":
		time.Sleep(30 * time.Second)
	case len(args) == 1 && args[0] == "_hog":
		hog()
	case len(args) >= 2 && args[0] == "_helper", len(args) >= 2 && args[0] == "_outside":
		outside(args)
	case len(os.Args) > 1 && canary(os.Args):
	default:
		fmt.Fprintln(os.Stderr, "usage: hostile check BIN [--harden] [--gentle|--rude] [--short] [NAME…] | merge FILE | list | attack NAME DIR")
		os.Exit(2)
	}
}

// attack is one way to interfere with the measurement.
type attack struct {
	name   string
	what   string // one sentence for the table
	do     func(w *world) error
	rude   bool     // it touches the whole machine: only in a machine of its own
	slow   bool     // it takes long
	flag   []string // further flags of runner-exec
	brief  bool     // one of its sort, for machines with little time
	closed bool     // --short also tries it with --harden
	only   bool     // an ordinary act that must not make the record doubtful
	blind  string   // a note of the record that names the limit which the attack uses
}

// attacks are all attacks, in the order of the table.
var attacks = func() (all []attack) {
	for _, group := range [][]attack{onProcesses, fromAfar, onMemory, onBPF, onCgroups, onMounts, onNames, onKernel, onResources, ordinary, last} {
		all = append(all, group...)
	}
	for i := range all {
		all[i].closed = strings.Contains(shortHardened, ","+all[i].name+",")
		all[i].brief = all[i].closed || strings.Contains(short, ","+all[i].name+",")
	}
	return all
}()

// short are the attacks of --short, and shortHardened those that it also tries with --harden.
const (
	short         = ",kill runner-capture,stop runner-normalize,pidfd signal,ptrace thread,write the stream,bpf scope map,bpf detach links,leave by a thread,fork away,forge cgroup.events,stalled open,ordinary container,"
	shortHardened = ",oom_score_adj,leave,core_pattern,ordinary look,"
)

// world is what an attack needs to know.
type world struct {
	dir    string
	exec   int            // pid of runner-exec
	stages map[string]int // pids of the stages by name
	scope  string         // directory of the measured cgroup
}

// measured is the measured program: it acts, attacks, and acts again. The acts must be in
// the record if it claims to be whole.
func measured(name, dir string) {
	for i := range attacks {
		if a := &attacks[i]; a.name == name {
			w := look(dir)
			act(dir, "before")
			err := a.do(w)
			act(dir, "after")
			exec.Command("/proc/self/exe", "_act", dir).Run()
			said := "done"
			if err != nil {
				said = err.Error()
			}
			os.WriteFile(dir+"/said", []byte(said), 0o600)
			return
		}
	}
	os.Exit(2)
}

// acts are the marks of act: what a whole record holds for each.
func acts(dir, mark string) []string {
	return []string{dir + "/open-" + mark, dir + "/gone-" + mark}
}

func act(dir, mark string) {
	for _, p := range acts(dir, mark) {
		if fd, err := unix.Open(p, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600); err == nil {
			unix.Close(fd)
		}
	}
	unix.Unlink(dir + "/gone-" + mark)
}

func look(dir string) *world {
	w := &world{dir: dir, exec: os.Getppid(), stages: map[string]int{}}
	w.stages["runner-exec"] = w.exec
	pids, _ := os.ReadDir("/proc")
	for _, p := range pids {
		var pid, parent int
		var comm, state string
		b, err := os.ReadFile("/proc/" + p.Name() + "/stat")
		if err != nil {
			continue
		}
		if n, _ := fmt.Sscanf(string(b), "%d %s %s %d", &pid, &comm, &state, &parent); n == 4 && parent == w.exec && pid != os.Getpid() {
			for _, name := range stageNames { // the kernel keeps 15 bytes of a name
				if comm = strings.Trim(comm, "()"); comm == name[:min(15, len(name))] {
					w.stages[name] = pid
				}
			}
		}
	}
	w.scope = ownCgroup()
	if w.stages["runner-capture"] == 0 {
		w.guess()
	}
	return w
}

// guess finds the stages where /proc does not show them: runner-exec started them in this
// order before us, and pidfd_open tells processes from threads.
func (w *world) guess() {
	at := 1
	for pid := w.exec + 1; pid < os.Getpid() && at < len(stageNames); pid++ {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			unix.Close(fd)
			w.stages[stageNames[at]] = pid
			at++
		}
	}
}

// ownCgroup is the directory of our cgroup.
func ownCgroup() string {
	own, _ := os.ReadFile("/proc/self/cgroup")
	rel := ""
	for line := range strings.Lines(string(own)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			rel = p
		}
	}
	return cgroupMount() + rel
}

// cgroupMount is where the v2 hierarchy is mounted.
func cgroupMount() string {
	b, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1]
		}
	}
	return "/sys/fs/cgroup"
}

func write(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
