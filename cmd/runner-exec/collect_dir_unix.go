//go:build unix

package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// keeperName is the name under which runner-exec starts a second copy of itself, the
// keeper, which makes and removes the directory of the logs. A FIFO without a reader
// blocks every program that opens it, so the FIFOs must go even when runner-exec is
// killed. They remain only if both processes are killed.
const keeperName = "runner-exec-logs"

// logDir is the directory that holds the FIFOs during the run.
//
// Its name contains the run id, so that a second run with the same id has the same
// environment and thus the same record. Other users cannot enter the directory, unless
// we are root: a command of root may become another user and must still reach its logs.
// In that case every user who knows the name of a FIFO can write to it. The names
// cannot be listed, and they are random if the run id is. The FIFOs allow only writing,
// because a second reader would take lines away.
type logDir struct {
	path   string
	names  map[string]string // layer → file
	root   *os.Root
	watch  *watch
	times  bool // note when lines arrive
	keeper *exec.Cmd
	hold   *os.File // the keeper's input: when it closes, the keeper removes the directory
}

func shared() bool { return os.Geteuid() == 0 }

func (d *logDir) fifoMode() uint32 {
	if shared() {
		return 0o222
	}
	return 0o200
}

func makeLogDir(o Options, layers []schemas.Layer) (_ *logDir, err error) {
	temp, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, err
	}
	d := &logDir{path: filepath.Join(temp, "runner-"+o.RunID), names: map[string]string{}, times: o.Times}
	order := d.path + "\x00"
	secret := ""
	if shared() && !o.Named {
		secret = "-" + rand.Text()
	}
	for _, l := range layers {
		d.names[l.Name] = l.Name + secret + ".ndjson"
		order += d.names[l.Name] + "\x00"
	}
	if _, err := os.Lstat(d.path); err == nil {
		return nil, tool.Fail(tool.ExitOwn, fmt.Errorf("the directory for the run's logs, %s, already exists", d.path),
			"give another --run-id; if no run with that name is in progress: rm -r "+d.path)
	}
	if err := d.startKeeper(order + "\x00"); err != nil {
		return nil, tool.Fail(tool.ExitOwn, fmt.Errorf("making the directory of the run's logs: %w", err),
			"name a directory for temporary files on a local file system: TMPDIR=DIR")
	}
	defer func() {
		if err != nil {
			d.remove()
		}
	}()
	if d.root, err = os.OpenRoot(d.path); err != nil {
		return nil, err
	}
	if d.watch, err = newWatch(d.path); err != nil {
		return nil, tool.Fail(tool.ExitOwn, fmt.Errorf("watching %s: %w", d.path, err),
			"this user may have reached the limit of inotify instances: sysctl fs.inotify.max_user_instances")
	}
	if shared() {
		if err = os.Chmod(d.path, 0o711); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// startKeeper returns when the keeper has made the directory and the FIFOs. It sends
// the names over standard input, because every user can read a process's arguments.
func (d *logDir) startKeeper(order string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	in, hold, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	answer, out, err := os.Pipe()
	if err != nil {
		hold.Close()
		return err
	}
	defer answer.Close()
	c := exec.Command(self)
	c.Args, c.Stdin, c.Stdout, c.Dir = []string{keeperName}, in, out, "/"
	child.OwnGroup(c)
	err = c.Start()
	out.Close()
	if err != nil {
		hold.Close()
		return err
	}
	d.keeper, d.hold = c, hold
	io.WriteString(hold, order) // if this fails, there is no answer
	answer.SetReadDeadline(time.Now().Add(patientRemoval))
	said, err := io.ReadAll(io.LimitReader(answer, 4<<10))
	if string(said) == "ok\n" && err == nil {
		return nil
	}
	d.dismiss()
	if text := strings.TrimSpace(string(said)); text != "" {
		return errors.New(text)
	}
	return fmt.Errorf("the process that should make it did not answer: %v", err)
}

// dismiss lets the keeper remove the directory, and waits until it has ended.
func (d *logDir) dismiss() {
	d.hold.Close()
	late := time.AfterFunc(patientRemoval, func() { d.keeper.Process.Kill() })
	d.keeper.Wait()
	late.Stop()
}

func (d *logDir) file(name string) string { return filepath.Join(d.path, name) }

func (d *logDir) touched(name string) bool { return d.watch.touched(name) }

func (d *logDir) collect(layer string, broken chan<- error) (string, collector, error) {
	name := d.names[layer]
	f, err := collect(d, name, d.times, broken)
	if err != nil {
		return "", nil, err
	}
	return f.path, f, nil
}

// remove removes the directory. The keeper usually does this; if it was killed, we do.
func (d *logDir) remove() error {
	d.dismiss()
	d.watch.close()
	if d.root == nil {
		return nil
	}
	defer d.root.Close()
	return clearDir(d.path, d.root)
}

// clearDir removes the files in the directory root, and then the directory if it is
// still at path. It does not enter subdirectories: one could be a mount.
func clearDir(path string, root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, name := range names {
		root.Remove(name)
	}
	mine, err := root.Stat(".")
	if err != nil {
		return err
	}
	now, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !os.SameFile(mine, now) {
		err = errors.New("something else has this name now")
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("the directory of the run's logs, %s, was not removed: %w", path, err)
	}
	return nil
}

// keepLogs is the keeper. It reads the names of the directory and the FIFOs from in,
// makes them, and removes them at the end of in. That is when runner-exec ends, even if
// it was killed.
func keepLogs(in *bufio.Reader) error {
	var order []string
	for {
		s, err := in.ReadString(0)
		if err != nil {
			return err
		}
		if s == "\x00" {
			break
		}
		order = append(order, strings.TrimSuffix(s, "\x00"))
	}
	dir, names := order[0], order[1:]
	// Signals to the whole process group or to all processes are handled by runner-exec.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		os.Remove(dir)
		return err
	}
	defer clearDir(dir, root)
	if err := os.Chmod(dir, 0o700); err != nil { // independent of the umask
		return err
	}
	for _, name := range names {
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			return fmt.Errorf("making the FIFO %s: %w", filepath.Join(dir, name), err)
		}
		if err := root.Chmod(name, 0o600); err != nil {
			return err
		}
	}
	fmt.Println("ok")
	os.Stdout.Close()
	io.Copy(io.Discard, in)
	return nil
}

// keeper acts as the keeper, or the remover, if the process was started as one.
func keeper() {
	if os.Args[0] == removerName {
		if remover() != nil {
			os.Exit(tool.ExitOwn)
		}
		os.Exit(0)
	}
	if os.Args[0] == keeperName {
		if err := keepLogs(bufio.NewReader(os.Stdin)); err != nil {
			fmt.Println(err)
			os.Exit(tool.ExitOwn)
		}
		os.Exit(0)
	}
}
