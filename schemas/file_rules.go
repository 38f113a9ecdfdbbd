package schemas

import (
	"slices"
	"strings"
)

// FileRules is the rule set about files and programs that runner-exec passes to
// runner-capture for enforcement (POLICY.md, "File enforcement"): the sections files and
// exec of a policy file, in which each rule has its number and one path.
type FileRules struct {
	Schema       string     `json:"schema"`
	PolicyDigest string     `json:"policy_digest"`
	FilesDefault string     `json:"files_default"` // allow, deny: rule number 0 of files
	ExecDefault  string     `json:"exec_default"`  // allow, deny: rule number 0 of exec
	Rules        []FileRule `json:"rules"`
}

// FileRule is one rule. Of those that name an operation, the first whose path is the
// object's or above it decides. A rule of the policy file with several paths becomes several
// of these with one number.
type FileRule struct {
	Number uint32   `json:"number"` // place of the rule in the policy file, from 1: files, then exec; 0 is automatic
	ID     string   `json:"id"`
	Action string   `json:"action"` // allow, deny
	Path   string   `json:"path"`   // absolute and clean, text form: it and all below
	On     []string `json:"on"`     // of files: read, write, create, delete; of exec: exec
}

// Operations that file rules decide, and the hook of a move: giving a thing another path
// would make void what the rules say about it.
const (
	HookRead   = "read"
	HookWrite  = "write"
	HookCreate = "create"
	HookDelete = "delete"
	HookExec   = OpExec
	HookMove   = OpMove
)

// FileOps are the operations of rules in the section files, and those of all rules.
var (
	FileOps = [...]string{HookRead, HookWrite, HookCreate, HookDelete}
	RuleOps = [...]string{HookRead, HookWrite, HookCreate, HookDelete, HookExec}
)

// Decide is the model of enforcement: what the rules say about an operation on the object
// whose resolved path is given as bytes. The number is that of the rule that decided, 0 is
// the default. A path that is not absolute is one that is not known: it matches every rule
// that denies, and none that allows.
func (f *FileRules) Decide(path []byte, op string) (number uint32, deny bool) {
	return f.decide(string(path), op)
}

func (f *FileRules) decide(path, op string) (number uint32, deny bool) {
	for i := range f.Rules {
		r := &f.Rules[i]
		if slices.Contains(r.On, op) && r.matches(path) {
			return r.Number, r.denies()
		}
	}
	if op == HookExec {
		return 0, f.ExecDefault == DecisionDeny
	}
	return 0, f.FilesDefault == DecisionDeny
}

// Unnamed is what the rules say about an object that is in no file system tree, such as a
// memfd or a pipe. Rules name paths, so what is left is the default of exec.
func (f *FileRules) Unnamed(op string) (deny bool) {
	return op == HookExec && f.ExecDefault == DecisionDeny
}

// Moves is the model of moves: whether the rules refuse that the thing at one path also or
// only gets another one, by a rename, a hard link or a mount. Of an exchange both directions
// count. It is refused if something that is denied now would be allowed there, and if a rule
// denies something below a directory that moves. The number is that of the rule which the
// move would make void. Whether the names may be made and removed is a question for Decide.
func (f *FileRules) Moves(from, to []byte) (number uint32, deny bool) {
	for _, op := range RuleOps {
		n, denied := f.Decide(from, op)
		if !denied {
			continue
		}
		if _, still := f.Decide(to, op); !still || f.allowsBelow(string(to), op) {
			return n, true
		}
	}
	for i := range f.Rules {
		r := &f.Rules[i]
		if !r.denies() || !r.isBelow(string(from)) {
			continue
		}
		for _, op := range r.On {
			if n, denied := f.decide(r.name(), op); denied {
				return n, true
			}
		}
	}
	return 0, false
}

// allowsBelow reports whether a rule allows an operation below a directory.
func (f *FileRules) allowsBelow(dir, op string) bool {
	return slices.ContainsFunc(f.Rules, func(r FileRule) bool {
		return !r.denies() && slices.Contains(r.On, op) && r.isBelow(dir)
	})
}

func (r *FileRule) denies() bool { return r.Action == DecisionDeny }

// matches reports whether the rule is about an object.
func (r *FileRule) matches(path string) bool {
	if !known(path) {
		return r.denies()
	}
	return Holds(r.name(), path)
}

// isBelow reports whether the rule's path is below a directory, or may be.
func (r *FileRule) isBelow(dir string) bool {
	p := r.name()
	return !known(dir) || len(dir) < len(p) && Holds(dir, p)
}

func known(path string) bool { return strings.HasPrefix(path, "/") }

// Holds reports whether an absolute path is a directory's or below it, by component.
func Holds(dir, path string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/' || dir == "/")
}

// name is the rule's path as the kernel has it.
func (r *FileRule) name() string {
	if strings.IndexByte(r.Path, '\\') < 0 {
		return r.Path // most paths are their own text form
	}
	b, _ := Untext(r.Path)
	return string(b)
}

// Numbers is how many rules the policy file has, automatic ones not counted.
func (f *FileRules) Numbers() uint64 {
	return highest(len(f.Rules), func(i int) uint32 { return f.Rules[i].Number })
}

// Policy is the digest of the policy file.
func (f *FileRules) Policy() string { return f.PolicyDigest }
