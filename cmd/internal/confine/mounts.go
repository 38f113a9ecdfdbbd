package confine

import (
	"path"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Mount is one place of a plan that gets a mount of its own.
type Mount struct {
	Path   string
	Region *Region // that it is in; a mount above a region only keeps its name
}

// Mounts plans the mounts by which rules are enforced. A path that is a mount can be
// neither renamed nor removed, and one that is read-only refuses every change below. What
// opens such a mount is asked about. What cannot be enforced so is a *RuleError.
func Mounts(rules *schemas.FileRules, regions []*Region) ([]Mount, error) {
	at := map[string]bool{"/": true}
	for _, r := range regions {
		if err := r.mountable(rules); err != nil {
			return nil, err
		}
		held, err := r.held(rules)
		if err != nil {
			return nil, err
		}
		if _, differs := r.differs(); !held || !differs {
			continue
		}
		for p := r.Path; p != "/"; p = path.Dir(p) {
			at[p] = true
		}
	}
	var plan []Mount
	for p := range at {
		plan = append(plan, Mount{p, regionOf(regions, p)})
	}
	slices.SortFunc(plan, func(a, b Mount) int { return strings.Compare(a.Path, b.Path) })
	return plan, nil
}

// mountable is nil if a mount and questions about opens can do what the region's rules say.
// Nothing is asked about a log, a FIFO of its own mount whose mode allows only writing.
func (r *Region) mountable(rules *schemas.FileRules) error {
	if r.Log {
		return nil
	}
	changes := []string{schemas.HookWrite, schemas.HookCreate, schemas.HookDelete}
	for _, op := range changes[1:] {
		if r.Deny[op] != r.Deny[changes[0]] {
			if !r.Deny[op] { // name the rule that denies
				op = changes[0]
			}
			return r.refuse(rules, op, "tells write, create and delete apart, which fanotify and mounts cannot: deny all three, or none of them")
		}
	}
	if r.Deny[schemas.HookRead] && !r.Deny[schemas.HookWrite] {
		return r.refuse(rules, schemas.HookRead, "denies reading and allows writing, which fanotify cannot tell apart")
	}
	return nil
}

// ReadOnly reports whether nothing may be changed here.
func (m Mount) ReadOnly() bool { return m.Region.Deny[schemas.HookWrite] }

// RegionOf is the region of a path.
func RegionOf(regions []*Region, p string) *Region { return regionOf(regions, p) }
