//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Results of one attack.
const (
	prevented = "prevented" // it was refused or had no effect: the record is whole
	failed    = "failed"    // no archive, and an exit code
	told      = "told"      // an archive that says what is wrong
	outsideOf = "outside"   // a limit of what can be seen, which the record names
	clean     = "CLEAN"     // the record claims to be whole and is not
	doubtful  = "DOUBTFUL"  // an ordinary act, and the record does not claim to be whole
)

// line is one line of the output.
type line struct {
	Check    string `json:"check"`
	Result   string `json:"result"`
	Detail   string `json:"detail"`
	Attack   string `json:"attack"`
	What     string `json:"what"`
	Harden   bool   `json:"harden"`
	Outcome  string `json:"outcome"`
	Happened string `json:"happened"`
}

func check(bin string, args []string) int {
	has := func(flag string) bool { return slices.Contains(args, flag) }
	harden, gentle, rude, brief := has("--harden"), has("--gentle"), has("--rude"), has("--short")
	var names []string
	for _, a := range args {
		if !strings.HasPrefix(a, "--") {
			names = append(names, a)
		}
	}
	code := 0
	measurePatience(bin)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	one := func(a *attack, harden bool) {
		l := try(bin, a, harden)
		if l.Result == "failed" {
			code = 1
		}
		out.Encode(l)
	}
	for i := range attacks {
		a := &attacks[i]
		if names != nil && !slices.Contains(names, a.name) || gentle && a.rude || rude && !a.rude || brief && !a.brief {
			continue
		}
		one(a, harden)
		if brief && a.closed {
			one(a, true)
		}
	}
	return code
}

// patience is how long a run may take: some kernels run on machines that are a hundred times
// slower than others.
var patience = time.Hour

func measurePatience(bin string) {
	begin := time.Now()
	try(bin, &attack{name: "nothing", do: func(*world) error { return nil }}, false)
	patience = 10*time.Second + 5*time.Since(begin)
}

// try makes one run and judges it.
func try(bin string, a *attack, harden bool) line {
	l := line{Check: a.name, Attack: a.name, What: a.what, Harden: harden}
	if harden {
		l.Check += " (--harden)"
	}
	top, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		l.Result, l.Detail = "failed", err.Error()
		return l
	}
	defer os.RemoveAll(top)
	r := &run{top: top, dir: top + "/work", archive: top + "/run.tar.gz", bin: top + "/bin"}
	r.cgroup = ownCgroup() + "/" + r.id() + "-run"
	if err := r.prepare(bin); err != nil {
		l.Result, l.Detail = "failed", err.Error()
		return l
	}
	r.start(a, harden)
	l.Outcome, l.Detail = r.judge(a)
	said, _ := os.ReadFile(r.dir + "/said")
	if l.Happened = string(said); l.Happened == "" {
		l.Happened = "it did not come back"
	}
	l.Happened, l.Detail = scrub(strings.ReplaceAll(l.Happened, r.dir, "DIR")), scrub(strings.ReplaceAll(l.Detail, r.top, "TOP"))
	l.Result = "ok"
	if l.Outcome == clean || l.Outcome == doubtful {
		l.Result = "failed"
	}
	r.clearUp()
	return l
}

// run is one measured run.
type run struct {
	top, dir, archive, bin string
	cgroup                 string // of the runner; the measured one is below it
	code                   int
	stderr                 string
	hung                   bool
}

// id is the run's id.
func (r *run) id() string { return filepath.Base(r.top) }

func (r *run) prepare(bin string) error {
	for _, d := range []string{r.dir, r.bin, r.top + "/tmp", r.cgroup} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	files, _ := filepath.Glob(bin + "/runner-*")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, f := range append(files, self) {
		// copies, so that an attack can replace them
		if err := os.Link(f, r.bin+"/"+filepath.Base(f)); err != nil {
			b, err := os.ReadFile(f)
			if err == nil {
				err = os.WriteFile(r.bin+"/"+filepath.Base(f), b, 0o755)
			}
			if err != nil {
				return err
			}
		}
	}
	return os.WriteFile(r.top+"/policy.yaml", []byte(policy), 0o600)
}

const policy = `schema: runner.policy.v0
default: allow
network:
  default: allow
  rules:
    - id: nine
      deny: 127.0.0.9
`

// start runs the attack in namespaces and a cgroup of its own: kill(-1) and cgroup.kill
// must not reach the machine.
func (r *run) start(a *attack, harden bool) {
	args := []string{"--run-id", r.id(), "--archive", r.archive, "--grace", "3s"}
	if harden {
		args = append(args, "--harden")
	}
	for _, f := range a.flag {
		args = append(args, strings.ReplaceAll(f, "POLICY", r.top+"/policy.yaml"))
	}
	args = append(args, "--", r.bin+"/hostile", "attack", a.name, r.dir)
	limit := patience
	if a.slow {
		limit *= 4
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	// sh is the first process: no signal from inside reaches it. $0 is the cgroup.
	const script = "echo $$ >\"$0/cgroup.procs\" && mount -t proc proc /proc && \"$@\"; code=$?; sleep 0.3; exit $code"
	c := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", script, r.cgroup, r.bin + "/runner-exec"}, args...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC, Unshareflags: unix.CLONE_NEWNS}
	c.Env = append(os.Environ(), "TMPDIR="+r.top+"/tmp")
	c.Dir = "/"
	c.WaitDelay = time.Second
	var errs bytes.Buffer
	c.Stdout, c.Stderr = &errs, &errs
	stop := make(chan bool)
	go r.serve(stop)
	err := c.Run()
	close(stop)
	r.hung = ctx.Err() != nil
	r.code = c.ProcessState.ExitCode()
	if ws, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.code = 128 + int(ws.Signal())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && errs.Len() == 0 {
		errs.WriteString(err.Error())
	}
	r.stderr = strings.TrimSpace(errs.String())
}

// serve is the outsider: it acts where a file of the run asks it to.
func (r *run) serve(stop chan bool) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		if b, err := os.ReadFile(r.dir + "/please"); err == nil && string(b) == r.dir {
			os.Remove(r.dir + "/please")
			act(r.dir, "outside")
		}
	}
}

// judge says what became of the record.
func (r *run) judge(a *attack) (outcome, detail string) {
	first, _, _ := strings.Cut(r.stderr, "\n")
	if st, err := os.Lstat(r.archive); err != nil || st.Size() < 100 || !st.Mode().IsRegular() {
		if a.only {
			return doubtful, r.stderr
		}
		if r.hung {
			return failed, "the run does not end; no archive"
		}
		return failed, fmt.Sprintf("exit %d, no archive; %s", r.code, first)
	}
	v := exec.Command(r.bin+"/runner-verify", "--require", "kernel=complete,drops=0,cgroup=clean", r.archive)
	if _, err := os.Stat(r.bin + "/runner-verify.was"); err == nil {
		v.Path = r.bin + "/runner-verify.was"
	}
	text, err := v.CombinedOutput()
	members := r.members()
	if err != nil {
		if a.only {
			return doubtful, cause(members["observation-health.json"]) + string(text)
		}
		if r.code != 0 && r.code != 1 {
			return told, fmt.Sprintf("exit %d; %s", r.code, cause(members["observation-health.json"]))
		}
		return told, cause(members["observation-health.json"])
	}
	var missing []string
	lines := members["layers/kernel.ndjson"]
	for _, mark := range []string{"before", "hidden", "after", "child", "late", "canary", "outside"} {
		for _, p := range acts(r.dir, mark) {
			if _, err := os.Stat(r.dir + "/open-" + mark); err == nil && !recorded(lines, p) {
				missing = append(missing, strings.TrimPrefix(p, r.dir+"/"))
			}
		}
	}
	if r.hung {
		return clean, "the run does not end although there is an archive"
	}
	if len(missing) == 0 {
		return prevented, "the record is whole"
	}
	if a.blind != "" && strings.Contains(members["observation-health.json"], a.blind) {
		return outsideOf, "the record says so: " + a.blind
	}
	return clean, "not in the record: " + strings.Join(missing, ", ")
}

// recorded reports whether a line has the act: of a file that is gone, its removal.
func recorded(lines, path string) bool {
	gone := strings.HasPrefix(filepath.Base(path), "gone-")
	removal := fmt.Sprintf(`"event_type":%d,`, schemas.EventUnlink)
	for line := range strings.Lines(lines) {
		if strings.Contains(line, `"`+path+`"`) && (!gone || strings.Contains(line, removal)) {
			return true
		}
	}
	return false
}

// cause is what the health says about the layer.
func cause(health string) string {
	var h struct {
		KernelLayer string   `json:"kernel_layer"`
		Cgroup      string   `json:"cgroup_correlation"`
		Notes       []string `json:"notes"`
	}
	json.Unmarshal([]byte(health), &h)
	var said []string
	for _, n := range h.Notes {
		if strings.HasPrefix(n, "s2_kernel_loss") || strings.HasPrefix(n, "s2_cgroup_escape") {
			said = append(said, n)
		}
	}
	return fmt.Sprintf("kernel_layer=%s cgroup_correlation=%s; %s", h.KernelLayer, h.Cgroup, strings.Join(said, "; "))
}

func (r *run) members() map[string]string {
	out := map[string]string{}
	f, err := os.Open(r.archive)
	if err != nil {
		return out
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return out
	}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if err != nil {
			return out
		}
		b, _ := io.ReadAll(t)
		out[h.Name] = string(b)
	}
}

// clearUp ends what the attack left behind: the cgroup of its run, and those that it made.
func (r *run) clearUp() {
	write("/proc/sys/kernel/sched_rt_runtime_us", "950000")
	if unix.Access(cgroupMount(), unix.W_OK) == unix.EROFS {
		unix.Mount("", cgroupMount(), "", unix.MS_REMOUNT, "")
	}
	dirs, _ := filepath.Glob(cgroupMount() + "/hostile-[a-z]*")
	write(r.cgroup+"/cgroup.freeze", "0")
	for _, d := range append(dirs, r.cgroup+"/runner-"+r.id(), r.cgroup) {
		write(d+"/cgroup.freeze", "0")
		write(d+"/cgroup.kill", "1")
		time.Sleep(50 * time.Millisecond)
		unix.Rmdir(d + "/box")
		unix.Rmdir(d)
	}
	write("/proc/sys/fs/binfmt_misc/hostile", "-1")
}
