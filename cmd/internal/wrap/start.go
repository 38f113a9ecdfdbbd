package wrap

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/child"
)

// Begin starts what comes next: the next wrapper with the state, or the program without the rights that wrappers take away. dir
// is the directory of our own programs. o has the program, its arguments, environment and files. on is called on the thread that
// the program is started from, before that; it may be nil. The error is one of child.Start.
func (s State) Begin(o child.Options, dir string, on func() error) (*child.Process, error) {
	around := onThread
	if Is(o.Program, dir) {
		var err error
		if o.Env, err = s.Environ(o.Env); err != nil {
			return nil, err
		}
	} else {
		c := s.Confinement()
		if err := c.Check(); err != nil {
			return nil, err
		}
		s.close()
		if o.User = s.User; o.User != nil && int(o.User.UID) == os.Geteuid() && int(o.User.GID) == os.Getegid() {
			o.User = nil // we are that user, and may have no right left to become anybody
		}
		if s.Cgroup > 0 {
			o.Cgroup = fmt.Sprintf("/proc/self/fd/%d", s.Cgroup)
		}
		if c.Any() {
			around = c.Start
		}
	}
	o.Around = func(start func() error) error {
		return around(func() error {
			if on != nil {
				if err := on(); err != nil {
					return err
				}
			}
			return start()
		})
	}
	return child.Start(o)
}

// ended is the report of the last wrapper about the program.
type ended struct {
	Exit    int      `json:"exit"`
	Signal  int      `json:"signal"`
	Chain   []string `json:"chain"`
	Command [][]byte `json:"command"`
}

// Reported is what the last wrapper says: how the command ended, behind which wrappers, and its words.
type Reported struct {
	End     child.Ending
	Chain   []string
	Command []string
}

// Report reports how the program ended to runner-exec, if this is the last wrapper of a measured run. An exit code could be that of a
// signal.
func (s State) Report(e child.Ending, command []string) {
	if s.Control <= 0 {
		return
	}
	f := os.NewFile(uintptr(s.Control), "control")
	defer f.Close()
	words := make([][]byte, len(command)) // as bytes: they may be no text
	for i, w := range command {
		words[i] = []byte(w)
	}
	json.NewEncoder(f).Encode(ended{e.Code, e.Signal, s.Chain, words}) // without runner-exec there is nobody to tell
}

// ReadReport reads the report. ok is false if there is none: the program was not started, or a wrapper failed.
func ReadReport(f *os.File) (x Reported, ok bool) {
	var r ended
	if json.NewDecoder(f).Decode(&r) != nil {
		return x, false
	}
	x = Reported{End: child.Ending{Code: r.Exit, Signal: r.Signal}, Chain: r.Chain}
	for _, w := range r.Command {
		x.Command = append(x.Command, string(w))
	}
	return x, true
}
