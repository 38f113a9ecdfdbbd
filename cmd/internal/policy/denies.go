package policy

import (
	"net/netip"
	"strconv"

	"github.com/runner-evidence/runner/schemas"
)

// Denies are the paths and destinations that rules that deny name, in the form of targets, and
// whether there are more that have such a form. "/" is left out: it names everything. So are patterns,
// networks and destinations without a port, of which no line can be compared.
func (p *Policy) Denies() (list []string, cut bool) {
	var t targetSet
	under := func(roots []root) {
		for _, r := range roots {
			for _, path := range []string{r.text, r.place} {
				if path != "/" {
					t.add(schemas.Text(path))
				}
			}
		}
	}
	for i := range p.rules {
		if r := &p.rules[i]; !r.allow {
			for _, c := range r.args {
				under(c.under)
				for _, d := range c.to {
					if s := d.endpoint(); s != "" {
						t.add(schemas.Text(s))
					}
				}
			}
		}
	}
	for i := range p.resources {
		if r := &p.resources[i]; !r.allow {
			under(r.under)
		}
	}
	if list, cut = t.sorted(); len(list) == 0 {
		return nil, cut
	}
	return list, cut
}

// endpoint is the one destination that a pattern is, "" for several.
func (p *destPattern) endpoint() string {
	switch {
	case p.port == 0 || p.below:
		return ""
	case p.prefix.IsValid() && p.prefix.IsSingleIP():
		return netip.AddrPortFrom(p.prefix.Addr(), p.port).String()
	case p.name != "":
		return p.name + ":" + strconv.Itoa(int(p.port))
	}
	return ""
}
