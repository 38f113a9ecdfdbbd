package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
)

// insideName is the name by which the program is called as the process inside. Its argument is the number of its connection.
const insideName = "runner-net: inside"

// IsInside reports whether this program was started as the process inside.
func IsInside() bool { return len(os.Args) == 2 && os.Args[0] == insideName }

// report is a message of the process inside. Descriptors of its sockets come with the first one.
type report struct {
	Failed *failure `json:"failed,omitempty"`
	Ready  bool     `json:"ready,omitempty"`
	Ended  bool     `json:"ended,omitempty"`
	Exit   int      `json:"exit,omitempty"`
	Signal int      `json:"signal,omitempty"`
}

type failure struct {
	Code  int      `json:"code"`
	Text  string   `json:"text"`
	Hints []string `json:"hints"`
}

// order is a message to the process inside: go on, or a signal for the program.
type order struct {
	Go     bool `json:"go,omitempty"`
	Signal int  `json:"signal,omitempty"`
}

// Inside is all that the process inside does.
func Inside() {
	fd, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(tool.ExitOwn)
	}
	unix.CloseOnExec(fd)
	deaf := make(chan os.Signal, 1) // those of the terminal reach the program directly
	signal.Notify(deaf)
	go func() {
		for range deaf {
		}
	}()
	i := &inside{fd: fd, conn: os.NewFile(uintptr(fd), "connection")}
	i.in, i.out = json.NewDecoder(i.conn), json.NewEncoder(i.conn)
	if i.in.Decode(&i.conf) != nil {
		os.Exit(tool.ExitOwn)
	}
	if err := i.run(); err != nil {
		f := failure{Code: tool.ExitOwn, Text: err.Error()}
		var coded *tool.Error
		if errors.As(err, &coded) {
			f.Code, f.Hints = coded.Code, coded.Hints
		}
		i.out.Encode(report{Failed: &f})
	}
}

type inside struct {
	conf  Config
	fd    int
	conn  *os.File
	in    *json.Decoder
	out   *json.Encoder
	state wrap.State // of the next wrapper or the program
	last  bool       // the program is started here
	trust string     // path of the file with the authority, or ""
}

func (i *inside) run() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := upAndLocal(); err != nil {
		return fmt.Errorf("setting up the network of the program: %w", err)
	}
	sockets, err := listen(i.conf.Ports)
	if err != nil {
		return err
	}
	if err := i.mounts(); err != nil {
		return fmt.Errorf("setting up the files of the program: %w", err)
	}
	if err := i.handOver(sockets); err != nil {
		return fmt.Errorf("handing the listeners over: %w", err)
	}
	var o order
	if i.in.Decode(&o) != nil || !o.Go {
		return errors.New("runner-net is gone")
	}
	p, err := i.start()
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			var o order
			if i.in.Decode(&o) != nil {
				return
			}
			p.Signal(syscall.Signal(o.Signal))
		}
	}()
	ended := make(chan child.Ending, 1)
	go func() { ended <- p.Wait() }()
	select {
	case e := <-ended:
		if i.last {
			i.state.Report(e, i.conf.Command)
		}
		return i.out.Encode(report{Ended: true, Exit: e.Code, Signal: e.Signal})
	case <-gone:
		p.Kill()
	}
	return nil
}

// batch is how many descriptors are sent at once. The kernel takes 253 (SCM_MAX_FD).
const batch = 128

// handOver sends the sockets outside. The last message says that it is.
func (i *inside) handOver(sockets []int) error {
	for len(sockets) > 0 {
		n := min(batch, len(sockets))
		line, err := json.Marshal(report{Ready: n == len(sockets)})
		if err != nil {
			return err
		}
		if err := unix.Sendmsg(i.fd, append(line, '\n'), unix.UnixRights(sockets[:n]...), nil, 0); err != nil {
			return err
		}
		for _, fd := range sockets[:n] {
			unix.Close(fd)
		}
		sockets = sockets[n:]
	}
	return nil
}

func (i *inside) start() (*child.Process, error) {
	for _, e := range i.conf.Env { // child.Look reads ours
		if name, value, ok := strings.Cut(e, "="); ok && name == "PATH" {
			os.Setenv(name, value)
		}
	}
	command := i.conf.Command
	program, err := child.Look(command[0])
	if err != nil {
		return nil, child.Refusal(err, nothingDone)
	}
	i.state, i.last = i.conf.State, !wrap.Is(program, i.conf.Tools)
	i.state.Netted = true
	p, err := i.state.Begin(child.Options{Name: command[0], Program: program, Args: command, Env: i.environment(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}, i.conf.Tools, nil)
	if err != nil {
		return nil, child.Refusal(err, nothingDone)
	}
	return p, nil
}

// nothingDone completes the error of a program that was not started.
const nothingDone = "nothing was run, nothing was written"

// environment is the program's.
func (i *inside) environment() (env []string) {
	for _, e := range i.conf.Env {
		name, _, _ := strings.Cut(e, "=")
		if slices.Contains(proxying, name) || i.trust != "" && slices.Contains(trusting, name) {
			continue
		}
		env = append(env, e)
	}
	if i.trust != "" {
		for _, name := range trusting {
			env = append(env, name+"="+i.trust)
		}
	}
	return env
}

// mounts puts the resolver's configuration, and whom to trust, in the place of those of the system, for the program only.
func (i *inside) mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	files, err := scratch(map[string][]byte{"resolv.conf": []byte("nameserver " + nameserver + "\n"), "ca.pem": i.conf.Certificate})
	if err != nil {
		return err
	}
	defer func() {
		for _, fd := range files {
			unix.Close(fd)
		}
	}()
	done := map[string]bool{}
	put := func(name, at string) (string, error) {
		real, err := filepath.EvalSymlinks(at)
		if err != nil || done[real] {
			return real, nil
		}
		done[real] = true
		return real, place(files[name], real)
	}
	if _, err := put("resolv.conf", "/etc/resolv.conf"); err != nil {
		return err
	}
	for _, at := range bundles {
		real, err := put("ca.pem", at)
		if err != nil {
			return err
		}
		if done[real] && i.trust == "" {
			i.trust = at
		}
	}
	if i.trust == "" {
		if i.trust, err = i.bundleElsewhere(files["ca.pem"]); err != nil {
			return err
		}
	}
	for _, at := range resolvers {
		if info, err := os.Lstat(at); err == nil && info.IsDir() {
			if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY, "mode=0755"); err != nil {
				return err
			}
		}
	}
	return nil
}

// bundleElsewhere puts the authority where the system has no bundle: in a directory that is empty, so that nothing is hidden, and
// that a box shows too.
func (i *inside) bundleElsewhere(file int) (string, error) {
	for _, dir := range []string{"/mnt", "/media", "/srv", "/opt"} {
		list, err := os.ReadDir(dir)
		if info, e := os.Lstat(dir); e != nil || !info.IsDir() || err != nil || len(list) > 0 {
			continue
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755"); err != nil {
			return "", err
		}
		at := dir + "/runner-net.pem"
		if err := os.WriteFile(at, nil, 0o644); err != nil {
			return "", err
		}
		return at, place(file, at)
	}
	return "", tool.Fail(tool.ExitCannot, errors.New("net_no_bundle: this system has no file with authorities, and no empty directory for one (/mnt, /media, /srv, /opt)"), "apt-get install ca-certificates, or the like")
}

// scratch makes files in a file system of their own, and returns a descriptor of a mount of each.
func scratch(texts map[string][]byte) (map[string]int, error) {
	const at = "/tmp" // covered for a moment; nothing else runs in these mounts yet
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755"); err != nil {
		return nil, err
	}
	files := map[string]int{}
	var err error
	for name, text := range texts {
		if err == nil {
			err = os.WriteFile(at+"/"+name, text, 0o644)
		}
		if err == nil {
			files[name], err = unix.OpenTree(unix.AT_FDCWD, at+"/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		}
	}
	if e := unix.Unmount(at, unix.MNT_DETACH); err == nil {
		err = e
	}
	return files, err
}

// place puts a copy of a mount of a file at a path, read-only.
func place(file int, at string) error {
	fd, err := unix.OpenTree(file, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
