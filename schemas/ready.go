package schemas

import "fmt"

// Ready is the line with which runner-capture tells runner-exec that the hooks are
// attached, and what to do before the command starts (STREAMS.md, "Ready line").
type Ready struct {
	Schema string `json:"schema"`
	// FileMechanism enforces the file rules, if there are any.
	FileMechanism string `json:"file_mechanism,omitempty"`
	// Landlock is the layer to start the command in.
	Landlock *LandlockLayer `json:"landlock,omitempty"`
	// Namespace is the mount namespace to start the command in.
	Namespace *ReadyNamespace `json:"namespace,omitempty"`
}

// LandlockLayer is an allow-list: the rights that it handles are refused, except below
// the paths of its rules.
type LandlockLayer struct {
	Handled []string       `json:"handled"` // names of LandlockRights
	Rules   []LandlockRule `json:"rules"`
}

// LandlockRule allows rights for one path and all below it.
type LandlockRule struct {
	Path  string   `json:"path"` // text form
	Allow []string `json:"allow"`
}

// ReadyNamespace names descriptors of runner-capture, which runner-exec copies.
type ReadyNamespace struct {
	Process  uint64 `json:"process"`  // process id of runner-capture
	Mount    uint64 `json:"mount"`    // the namespace
	Root     uint64 `json:"root"`     // the root directory in it
	Cwd      uint64 `json:"cwd"`      // the working directory in it
	Listener uint64 `json:"listener"` // the fanotify group: while it is open, nothing waits in vain and nothing passes unasked
}

// LandlockRights are the rights of files that a layer can handle, with the bit of each.
var LandlockRights = [...]string{
	"execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file", "make_char", "make_dir",
	"make_reg", "make_sock", "make_fifo", "make_block", "make_sym", "refer", "truncate",
}

// LandlockBits are the bits of named rights.
func LandlockBits(names []string) (bits uint64, err error) {
	for _, name := range names {
		bit := -1
		for i, n := range LandlockRights {
			if n == name {
				bit = i
			}
		}
		if bit < 0 {
			return 0, fmt.Errorf("%.100q is no right of Landlock", name)
		}
		bits |= 1 << bit
	}
	return bits, nil
}

// LandlockNames are the names of bits.
func LandlockNames(bits uint64) []string {
	names := []string{}
	for i, n := range LandlockRights {
		if bits&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return names
}

// ParseReady parses the ready line.
func ParseReady(line []byte) (*Ready, error) {
	r := new(Ready)
	err := decode(line, r)
	if err == nil && r.Schema != SchemaReady {
		err = fmt.Errorf("schema is %.100q, expected %q", r.Schema, SchemaReady)
	}
	if err == nil && r.FileMechanism != "" {
		err = oneOf(FactFileMechanism, r.FileMechanism, FileMechanisms[:]...)
	}
	if err == nil && r.Landlock != nil {
		err = r.Landlock.check()
	}
	if err != nil {
		return nil, fmt.Errorf("ready line: %w", err)
	}
	return r, nil
}

func (l *LandlockLayer) check() error {
	_, err := LandlockBits(l.Handled)
	for i := range l.Rules {
		_, bits := LandlockBits(l.Rules[i].Allow)
		_, path := Untext(l.Rules[i].Path)
		err = first(err, bits, path)
	}
	return err
}
