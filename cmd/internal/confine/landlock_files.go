package confine

import (
	"github.com/runner-evidence/runner/schemas"
)

// abiTruncate is the first ABI with the right to truncate.
const (
	abiRefer    = 2 // a rule can allow moves between directories; before, every ruleset refuses them
	abiTruncate = 3
)

// landlockRights are the rights that an operation of the rules needs. Landlock has none
// for changes of mode, owner, times and attributes.
var landlockRights = map[string][]string{
	schemas.HookRead:   {"read_file", "read_dir"},
	schemas.HookWrite:  {"write_file", "truncate"},
	schemas.HookCreate: {"make_char", "make_dir", "make_reg", "make_sock", "make_fifo", "make_block", "make_sym"},
	schemas.HookDelete: {"remove_dir", "remove_file"},
	schemas.HookExec:   {"execute"},
}

// fileRights are the rights that a rule for something else than a directory can have.
const fileRights = 1<<0 | 1<<1 | 1<<2 | 1<<14 // execute, write_file, read_file, truncate

// moving is the right to move between directories. The kernel refuses a move that gives
// more rights than before, whatever is allowed.
const moving = "refer"

// Landlock is the layer that enforces the rules. What it cannot express is a *RuleError: it
// can only allow more, the deeper the path.
func Landlock(rules *schemas.FileRules, regions []*Region, abi int) (*schemas.LandlockLayer, error) {
	top := regions[0]
	var handled uint64
	for op, names := range landlockRights {
		if top.Deny[op] {
			bits, _ := schemas.LandlockBits(names)
			handled |= bits
		}
	}
	switch {
	case abi < abiRefer:
		return nil, &RuleError{"Landlock", "refuses every move between directories before ABI 2 (Linux 5.19)"}
	case abi < abiTruncate && top.Deny[schemas.HookWrite]:
		return nil, top.refuse(rules, schemas.HookWrite, "denies writing, and Landlock cannot refuse truncate before ABI 3 (Linux 6.2)")
	}
	layer := &schemas.LandlockLayer{Handled: append(schemas.LandlockNames(handled), moving),
		Rules: []schemas.LandlockRule{{Path: "/", Allow: []string{moving}}}}
	for _, r := range regions[1:] {
		for _, op := range schemas.RuleOps {
			if r.Deny[op] && !r.Above.Deny[op] {
				return nil, r.refuse(rules, op, "denies %s below a path where it is allowed, and Landlock can only allow", op)
			}
		}
		if held, err := r.held(rules); err != nil {
			return nil, err
		} else if !held {
			continue
		}
		if allow := r.allows(handled); allow != 0 {
			layer.Rules = append(layer.Rules, schemas.LandlockRule{Path: schemas.Text(r.Path), Allow: schemas.LandlockNames(allow)})
		}
	}
	return layer, nil
}

// allows are the handled rights that the region has.
func (r *Region) allows(handled uint64) (allow uint64) {
	for op, names := range landlockRights {
		if bits, _ := schemas.LandlockBits(names); !r.Deny[op] {
			allow |= bits & handled
		}
	}
	if r.Place != Directory {
		allow &= fileRights
	}
	return allow
}
