package proc

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// A helper is a second process of this program, which starts one program after another. It is the server of a session
// of the decision log, so that the process tree of what it starts is known, and at each time only one call has it.

// helperName is the name by which the program is called as a helper. Standard input is its socket then.
const helperName = "runner-proc: helper"

// order is a message to a helper. Descriptors that come with it are the pipes, the program and the cgroup.
type order struct {
	Op     string   `json:"op"`
	Argv   [][]byte `json:"argv,omitzero"`
	Env    [][]byte `json:"env,omitzero"`
	Dir    []byte   `json:"dir,omitzero"`
	Path   []byte   `json:"path,omitzero"` // of a program that is no descriptor
	File   bool     `json:"file,omitzero"`
	Script bool     `json:"script,omitzero"`
	Group  bool     `json:"group,omitzero"`
	Tree   bool     `json:"tree,omitzero"`
	Signal int      `json:"signal,omitzero"`
}

// Orders. A helper reports that it is there. A program gives a report when it is started, and one when it has ended; sweep
// gives one.
const (
	orderStart  = "start"
	orderSignal = "signal"
	orderSweep  = "sweep"
)

// report is a message of a helper.
type report struct {
	PID  int    `json:"pid,omitzero"`
	Exit uint32 `json:"exit,omitzero"`
	Err  string `json:"err,omitempty"`
}

// maxMessage is the longest message, in bytes: a request has at most as many.
const maxMessage = 1 << 30

// send sends a message with descriptors.
func send(c *net.UnixConn, v any, files ...int) error {
	b, err := schemas.Marshal(v)
	if err != nil {
		return err
	}
	b = append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	n, _, err := c.WriteMsgUnix(b[:4], rights, nil)
	if err == nil && n < 4 {
		err = io.ErrShortWrite
	}
	if err == nil {
		_, err = c.Write(b[4:])
	}
	return err
}

// receive receives a message and its descriptors.
func receive(c *net.UnixConn, v any) (files []*os.File, err error) {
	head, rights := make([]byte, 4), make([]byte, unix.CmsgSpace(8*4))
	n, m, _, _, err := c.ReadMsgUnix(head, rights)
	switch {
	case err != nil:
		return nil, err
	case n < len(head):
		return nil, io.ErrUnexpectedEOF
	}
	size := binary.LittleEndian.Uint32(head)
	if size > maxMessage {
		return nil, errors.New("a message is too long")
	}
	list, err := unix.ParseSocketControlMessage(rights[:m])
	for i := range list {
		fds, e := unix.ParseUnixRights(&list[i])
		if err == nil {
			err = e
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	if err != nil {
		return files, err
	}
	b := make([]byte, size)
	if _, err = io.ReadFull(c, b); err == nil {
		err = schemas.Unmarshal(b, v)
	}
	return files, err
}

// IsHelper reports whether this process was started as a helper.
func IsHelper() bool { return len(os.Args) == 1 && os.Args[0] == helperName }

// Help is all that a helper does. It ends when its socket does.
func Help() {
	runtime.LockOSThread() // what it starts ends with this thread
	c, err := connOf(os.Stdin)
	if err != nil {
		os.Exit(1)
	}
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	w := &helping{conn: c}
	w.say(report{}) // what the start of a program does comes before the session
	for {
		var o order
		files, err := receive(c, &o)
		if err != nil {
			w.kill(unix.SIGKILL)
			os.Exit(0)
		}
		switch o.Op {
		case orderStart:
			w.start(&o, files)
		case orderSignal:
			w.kill(unix.Signal(o.Signal))
		case orderSweep:
			sweep()
			w.say(report{})
		}
	}
}

func connOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("it is no socket")
	}
	return u, nil
}

// helping is the state of a helper.
type helping struct {
	conn *net.UnixConn
	mu   sync.Mutex
	p    started // what runs; nil is nothing
	out  sync.Mutex
}

func (w *helping) say(r report) {
	w.out.Lock()
	defer w.out.Unlock()
	if send(w.conn, r) != nil {
		os.Exit(1)
	}
}

func (w *helping) kill(sig unix.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.p != nil {
		w.p.signal(sig)
	}
}

// start starts a program, reports it, and later its end.
func (w *helping) start(o *order, files []*os.File) {
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	l, err := o.launch(files)
	var p started
	var pid int
	if err == nil {
		p, pid, err = startHere(l)
	}
	if err != nil {
		w.say(report{Err: schemas.Text(err.Error())})
		return
	}
	w.mu.Lock()
	w.p = p
	w.mu.Unlock()
	w.say(report{PID: pid})
	go func() {
		exit := p.wait()
		w.mu.Lock()
		w.p = nil
		w.mu.Unlock()
		w.say(report{Exit: exit})
	}()
}

// launch is what an order asks for.
func (o *order) launch(files []*os.File) (*launch, error) {
	want := 3
	for _, there := range []bool{o.File, o.Group} {
		if there {
			want++
		}
	}
	if len(files) != want {
		return nil, errors.New("descriptors of the order are missing")
	}
	l := &launch{program: &program{path: string(o.Path), script: o.Script}, dir: string(o.Dir), tree: o.Tree,
		pipes: &pipes{childIn: files[0], childOut: files[1], childErr: files[2]}}
	files = files[3:]
	if o.File {
		l.program.file, files = files[0], files[1:]
	}
	if o.Group {
		l.group = &group{f: files[0]}
	}
	for _, a := range o.Argv {
		l.argv = append(l.argv, string(a))
	}
	for _, e := range o.Env {
		l.env = append(l.env, string(e))
	}
	return l, nil
}

// order asks a helper for it.
func (l *launch) order() (o order, files []int) {
	o = order{Op: orderStart, Dir: []byte(l.dir), Path: []byte(l.program.path), Script: l.program.script, Tree: l.tree}
	for _, f := range l.pipes.theirs() {
		files = append(files, int(f.Fd()))
	}
	if l.program.file != nil {
		o.File, files = true, append(files, int(l.program.file.Fd()))
	}
	if l.group != nil {
		o.Group, files = true, append(files, int(l.group.f.Fd()))
	}
	for _, a := range l.argv {
		o.Argv = append(o.Argv, []byte(a))
	}
	for _, e := range l.env {
		o.Env = append(o.Env, []byte(e))
	}
	return o, files
}
