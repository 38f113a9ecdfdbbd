package schemas

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Limits of a rule set about files.
const (
	MaxFileRules     = 256  // objects in rules, without those of automatic rules
	MaxFilePaths     = 128  // paths in a policy file: each can become two, with the place where its links lead
	maxFilePath      = 4095 // bytes of a path, of 4,096 with its NUL
	maxFileComponent = 255  // bytes of one name in it
)

// ParseFileRules parses the rules that runner-exec passes to runner-capture for
// enforcement. runner-capture decides whether this kernel can enforce them.
func ParseFileRules(b []byte) (*FileRules, error) {
	return parseRules(b, "file rules", new(FileRules))
}

// Check says what is wrong with a rule set.
func (f *FileRules) Check() error {
	err := first(oneOf("schema", f.Schema, SchemaFileRules), digest(f.PolicyDigest),
		oneOf("files_default", f.FilesDefault, DecisionAllow, DecisionDeny),
		oneOf("exec_default", f.ExecDefault, DecisionAllow, DecisionDeny))
	automatic, logs := int(f.Automatic()), len(LogLayers())
	if n := len(f.Rules) - automatic; err == nil && n > MaxFileRules {
		err = fmt.Errorf("%d rules with one path each, at most %d", n, MaxFileRules)
	}
	if err == nil && automatic > logs {
		err = fmt.Errorf("%d automatic rules, at most %d", automatic, logs)
	}
	if err != nil {
		return err
	}
	last := ruleHead{}
	for i := range f.Rules {
		r := &f.Rules[i]
		if err := first(r.Check(), r.head().after(last)); err != nil {
			return fmt.Errorf("rules[%d] (%.64q): %w", i, r.ID, err)
		}
		last = r.head()
	}
	return nil
}

func (r *FileRule) head() ruleHead { return ruleHead{r.Number, r.ID, r.Action} }

// Check says what is wrong with one rule.
func (r *FileRule) Check() error {
	err := r.head().check()
	if r.Automatic() {
		err = r.checkAutomatic()
	}
	if len(r.On) == 0 {
		err = first(err, errors.New("on is empty, expected read, write, create, delete or exec"))
	}
	for i, o := range r.On {
		err = first(err, oneOf("on", o, RuleOps[:]...))
		if slices.Contains(r.On[:i], o) {
			err = first(err, fmt.Errorf("on has %s twice", o))
		}
	}
	if slices.Contains(r.On, HookExec) && len(r.On) > 1 {
		err = first(err, errors.New("on has exec and more: exec is a section of its own"))
	}
	return first(err, r.CheckPath())
}

// CheckPath says what is wrong with the rule's path.
func (r *FileRule) CheckPath() error {
	b, err := Untext(r.Path)
	name := string(b)
	switch {
	case err != nil:
		return fmt.Errorf("path %.120q is not a text: %w", r.Path, err)
	case !path.IsAbs(name):
		return fmt.Errorf("path is %.120q, expected an absolute path", r.Path)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("path %.120q holds a NUL byte", r.Path)
	case name != path.Clean(name):
		return fmt.Errorf("path is %.120q, expected %.120q", r.Path, path.Clean(name))
	case len(name) > maxFilePath:
		return fmt.Errorf("path has %d bytes, at most %d", len(name), maxFilePath)
	}
	for c := range strings.SplitSeq(name, "/") {
		if len(c) > maxFileComponent {
			return fmt.Errorf("path has a name of %d bytes, at most %d", len(c), maxFileComponent)
		}
	}
	return nil
}
