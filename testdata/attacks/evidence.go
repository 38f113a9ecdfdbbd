//go:build linux

package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// told is one line of the kernel layer.
type told struct {
	Seq        int    `json:"seq"`
	PID        int    `json:"pid"`
	Type       uint32 `json:"event_type"`
	Value      *string
	Flags      *uint64
	Mode       *uint64
	Resolve    *uint64
	Return     *int64 `json:"return_value"`
	AccessMode string `json:"access_mode"`
	Status     string `json:"status"`
	Doubt      string `json:"doubt"`
}

// text is the value; that of null cannot be a path.
func (t *told) text() string {
	if t.Value == nil {
		return "null"
	}
	return *t.Value
}

// marked is what the line itself says against its exactness.
func (t *told) marked() string {
	switch {
	case t.Doubt != "":
		return "doubt " + t.Doubt
	case t.Status == statusUnproven:
		return "status " + statusUnproven
	case t.Value == nil:
		return "value null"
	}
	return ""
}

const statusUnproven = "unproven"

// record is what an archive holds of the kernel layer.
type record struct {
	lines []told
	notes []string
}

func read(archive string) (r record, err error) {
	f, err := os.Open(archive)
	if err != nil {
		return r, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return r, err
	}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return r, nil
		} else if err != nil {
			return r, err
		}
		switch h.Name {
		case "layers/kernel.ndjson":
			for d := json.NewDecoder(t); d.More(); {
				var l told
				if err := d.Decode(&l); err != nil {
					return r, err
				}
				r.lines = append(r.lines, l)
			}
		case "observation-health.json":
			var health struct{ Notes []string }
			if err := json.NewDecoder(t).Decode(&health); err != nil {
				return r, err
			}
			r.notes = health.Notes
		}
	}
}

// evidence is what an attack's judge has.
type evidence struct {
	dir    string // the attack's directory as it was left
	pid    int    // the attack's process
	end    string // how that ended: "exit status 0", "signal: killed"
	own    []told // the lines of its processes, in the order of the record
	all    []told // all lines of the record
	notes  []string
	passes bool   // the record passes for whole: kernel=complete,drops=0,cgroup=clean
	none   string // why there is no archive; "" if there is one
	words  map[string]string
}

// judge calls the attack's judge with its part of the record.
func (r *run) judge(i int) verdict {
	m := r.members[i]
	a := find(attackOf(m.Name))
	e := &evidence{dir: r.dir + "/" + folder(m.Name), pid: m.PID, end: m.End, all: r.lines, notes: r.notes, passes: r.passes, none: r.missing}
	e.own = part(r.lines, r.members, i)
	if err := e.hear(); err != nil {
		return failed("%v", err)
	}
	if why := e.said(notHereKey); why != "" {
		return verdict{isNotHere, why}
	}
	if why := e.said(errorKey); why != "" {
		return failed("%s", why)
	}
	if e.end == tooLong {
		return failed("%s", e.end)
	}
	v := a.judge(e)
	switch {
	case a.ordinary && v.result != isFailed && !e.passes:
		return verdict{isDoubtful, strings.ReplaceAll(r.missing+r.refused, "\n", "; ")}
	case v.result == isLie && e.none != "":
		return declared("no archive")
	case v.result == isLie && !e.passes:
		return declared("%s", e.cause())
	}
	return v
}

// part are the lines of the attack with number i: the record is a walk of the process tree, so those
// of a process and its descendants stand together.
func part(lines []told, members []member, i int) (own []told) {
	others := map[int]bool{}
	for n, m := range members {
		others[m.PID] = n != i
	}
	in := false
	for _, l := range lines {
		if other, head := others[l.PID]; head {
			in = !other
		}
		if in {
			own = append(own, l)
		}
	}
	return own
}

func (e *evidence) hear() error {
	e.words = map[string]string{}
	f, err := os.Open(e.dir + ".said")
	if err != nil {
		return err
	}
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); {
		var pair [2]string
		if err := d.Decode(&pair); err != nil {
			return err
		}
		e.words[pair[0]] = pair[1]
	}
	return nil
}

// said is what the attack told with say; "" if it did not.
func (e *evidence) said(key string) string { return e.words[key] }

func (e *evidence) path(name string) string { return e.dir + "/" + name }

// exists asks the file system.
func (e *evidence) exists(name string) bool {
	_, err := os.Lstat(e.path(name))
	return err == nil
}

// count is the number that a note of the archive gives to a name, such as unproven in s2_path_quality.
// It is that of the whole archive: only for attacks that are alone.
func (e *evidence) count(name string) (n uint64) {
	for _, note := range e.notes {
		for _, word := range strings.Fields(note) {
			if v, ok := strings.CutPrefix(word, name+"="); ok {
				n, _ = strconv.ParseUint(v, 10, 64)
			}
		}
	}
	return n
}

// noted reports whether a note holds the text.
func (e *evidence) noted(text string) bool {
	for _, n := range e.notes {
		if strings.Contains(n, text) {
			return true
		}
	}
	return false
}

// cause is what the archive says of what is missing, without the numbers.
func (e *evidence) cause() string {
	for _, n := range e.notes {
		if strings.HasPrefix(n, "s2_kernel_loss") || strings.HasPrefix(n, "s2_cgroup_escape") {
			return numbers.ReplaceAllString(n, "")
		}
	}
	return fmt.Sprint("the record does not pass: ", e.notes)
}
