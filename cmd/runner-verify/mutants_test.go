package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/archive/archivetest"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
)

var everyMutant = flag.Bool("mutants", false, "make mutants of every line of every archive, not of a few archives and one line of each kind")

// acceptedFile lists the mutants that runner-verify accepts, and why nothing contradicts them.
const acceptedFile = "testdata/accepted.txt"

// job is one mutant: one member of an archive with another text.
type job struct {
	base              *base
	member, text      string
	profile, at, what string
	ordinary          bool
}

// found is a mutant that was accepted.
type found struct {
	archive  string // one of them
	ordinary bool   // an ordinary run makes it
}

// mutants makes and judges mutants.
type mutants struct {
	t        *testing.T
	forms    map[string]*mutator
	lines    map[string]map[string]*object // member → kind → a line of it, of any archive
	jobs     chan job
	done     sync.WaitGroup
	lock     sync.Mutex
	accepted map[[2]string]found // by place and mutation
	ordinary bool                // the mutants of now are those of an ordinary run
	tried    int
	seen     map[uint64]bool
	seed     maphash.Seed
}

// TestMutants changes one thing after the other in good archives, with lengths and digests
// that fit. runner-verify refuses each, except those that the list names with the reason.
func TestMutants(t *testing.T) {
	if testing.Short() {
		testkit.Skip(t, "mutants of archives", "building the stages takes seconds; run without -short")
	}
	m := &mutants{t: t, forms: map[string]*mutator{}, lines: map[string]map[string]*object{}, jobs: make(chan job, 64),
		accepted: map[[2]string]found{}, seen: map[uint64]bool{}, seed: maphash.MakeSeed(), ordinary: true}
	all := bases(t)
	for i := range all {
		if b := &all[i]; !m.verifies(b.members) {
			t.Fatalf("%s itself is not valid", b.name)
		}
		m.learn(&all[i])
	}
	for range runtime.NumCPU() {
		m.done.Go(m.judge)
	}
	for i := range all {
		m.mutate(&all[i])
	}
	for i := range all {
		if *everyMutant {
			m.ordinary = false
			m.mutate(&all[i])
		}
	}
	close(m.jobs)
	m.done.Wait()
	compareAccepted(t, m.accepted)
	t.Logf("%d mutants of %d archives, %d kinds accepted", m.tried, len(all), len(m.accepted))
}

// verifies judges an archive without its container.
func (m *mutants) verifies(c content) bool {
	v := newVerifier()
	defer v.close()
	sum, err := archive.ReadMembers(m.t.Context(), archivetest.Content(c).Members(), v.visitor())
	if err = v.conclude(sum, err); err != nil {
		m.t.Error(err)
	}
	return v.total == 0
}

func (m *mutants) judge() {
	for j := range m.jobs {
		c := content{}
		for name, text := range j.base.members {
			c[name] = text
		}
		c[j.member] = j.text
		if j.member != bundle.ManifestName {
			redigest(c, j.member)
		}
		if !m.verifies(c) {
			continue
		}
		if err := schemaFault(j.member, []byte(j.text)); err != nil {
			m.t.Errorf("accepted, but not by its JSON Schema: %s %s of %s: %v", j.at, j.what, j.member, err)
		}
		m.lock.Lock()
		key := [2]string{j.profile + j.at, j.what}
		if old := m.accepted[key]; !old.ordinary {
			m.accepted[key] = found{j.base.name, j.ordinary}
		}
		m.lock.Unlock()
	}
}

// redigest writes the manifest that fits the content, of which one member changed.
func redigest(c content, member string) {
	man, err := schemas.ParseManifest([]byte(c[bundle.ManifestName]))
	if err != nil {
		panic(err)
	}
	f, sum := man.Files[member], sha256.Sum256([]byte(c[member]))
	f.SHA256, f.Bytes = "sha256:"+hex.EncodeToString(sum[:]), int64(len(c[member]))
	man.Files[member] = f
	b, err := schemas.Marshal(man)
	if err != nil {
		panic(err)
	}
	c[bundle.ManifestName] = string(b)
}

// learn takes in what stands where in a good archive.
func (m *mutants) learn(b *base) {
	for _, form := range schemas.Members() {
		if m.forms[form.Member] == nil {
			m.forms[form.Member] = newMutator(form)
			m.lines[form.Member] = map[string]*object{}
		}
		mut := m.forms[form.Member]
		if !form.Lines {
			if text, there := b.members[form.Member]; there {
				mut.learn(form.Member, parseTree(m.t, text))
			}
			continue
		}
		for line := range strings.Lines(b.members[form.Member]) {
			o := parseTree(m.t, line).(*object)
			mut.learn(placeOf(form, o), o)
			m.lines[form.Member][kindOf(o)] = o
		}
	}
}

func newMutator(form schemas.Form) *mutator {
	m := &mutator{form: form, enums: map[string][]string{}, seen: map[string]map[string]any{}}
	var schema any
	if err := json.Unmarshal(form.JSONSchema(), &schema); err != nil {
		panic(err)
	}
	m.collect("", schema)
	slices.Sort(m.keys)
	m.keys = slices.Compact(m.keys)
	return m
}

// collect takes keys and closed sets from a JSON Schema.
func (m *mutator) collect(key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, below := range v {
			switch list, _ := below.([]any); k {
			case "properties":
				for name, p := range below.(map[string]any) {
					m.keys = append(m.keys, name)
					m.collect(name, p)
				}
			case "enum":
				for _, w := range list {
					if s, ok := w.(string); ok {
						m.enums[key] = append(m.enums[key], s)
					}
				}
			default:
				m.collect(key, below)
			}
		}
	case []any:
		for _, e := range v {
			m.collect(key, e)
		}
	}
}

// get is a value of a line.
func (o *object) get(key string) any {
	if i := slices.Index(o.keys, key); i >= 0 {
		return o.values[i]
	}
	return nil
}

// kindOf is what a line is about.
func kindOf(o *object) string {
	for _, key := range []string{"kind", "event_type", "intent_type", "type", "decision"} {
		if s, ok := o.get(key).(string); ok {
			return s
		}
	}
	return "line"
}

// classOf joins the kinds of kernel lines that have the same keys.
func classOf(kind string) string {
	if strings.HasPrefix(kind, "event_") {
		return "call"
	}
	return kind
}

func placeOf(form schemas.Form, o *object) string { return form.Member + "/" + classOf(kindOf(o)) }

// ordinary are the archives of an ordinary run. Of the manifest only that of the first is changed:
// they differ in nothing else.
var ordinary = []string{"layered", "tool-times", "processes", "file-blocked", "losses", "dropped-by-program", "no-kernel", "sdk-flood", "tool-proxy-killed", "intents", "other", "wrapped"}

// mutate makes the mutants of an archive.
func (m *mutants) mutate(b *base) {
	for _, form := range schemas.Members() {
		text, there := b.members[form.Member]
		if !there || m.ordinary && (!slices.Contains(ordinary, b.name) || form.Member == bundle.ManifestName && b.name != ordinary[0]) {
			continue
		}
		if form.Lines {
			m.ofLines(b, form, text)
			continue
		}
		root := parseTree(m.t, text)
		m.forms[form.Member].mutate(placed{form.Member, root, func(v any) { root = v }}, func(at, what string) { m.put(b, form.Member, render(root), at, what) })
		m.put(b, form.Member, "", form.Member, "emptied")
		m.put(b, form.Member, text+"\n", form.Member, "newline")
	}
}

func (m *mutants) put(b *base, member, text, at, what string) {
	h := maphash.Comparable(m.seed, [3]string{b.name, member, text})
	if text == b.members[member] || m.seen[h] {
		return
	}
	m.seen[h] = true
	m.tried++
	j := job{ordinary: m.ordinary, base: b, member: member, text: text, at: at, what: what}
	if b.name == "other" {
		j.profile = "v0 "
	}
	m.jobs <- j
}

// ofLines makes the mutants of a layer: of its lines, and of their order.
func (m *mutants) ofLines(b *base, form schemas.Form, text string) {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1]
	kinds := map[string]bool{}
	for i, line := range lines {
		o := parseTree(m.t, line).(*object)
		kind := kindOf(o) + strings.Join(o.keys, " ") + fmt.Sprint(o.get("status"))
		if kinds[kind] && m.ordinary {
			continue
		}
		kinds[kind] = true
		place, changed := placeOf(form, o), slices.Clone(lines)
		var root any = o
		m.forms[form.Member].mutate(placed{place, o, func(v any) { root = v }}, func(at, what string) {
			changed[i] = render(root) + "\n"
			m.put(b, form.Member, strings.Join(changed, ""), at, what)
		})
		m.order(b, form, lines, i, place)
	}
	for _, kind := range sortedKeys(m.lines[form.Member]) {
		o := m.lines[form.Member][kind]
		for i := range min(len(lines), 3) + 1 {
			m.numbered(b, form, slices.Insert(slices.Clone(lines), i, renamed(b, o)), form.Member+"/"+classOf(kind), "line added")
		}
	}
	m.put(b, form.Member, "", form.Member, "emptied")
	m.put(b, form.Member, text+"\n", form.Member, "blank line")
	m.put(b, form.Member, strings.TrimSuffix(text, "\n"), form.Member, "no newline")
}

// order makes the mutants of the place of one line, with its own number and with the right ones.
func (m *mutants) order(b *base, form schemas.Form, lines []string, i int, place string) {
	without := slices.Delete(slices.Clone(lines), i, i+1)
	for what, changed := range map[string][]string{
		"line removed":          without,
		"line doubled":          slices.Insert(slices.Clone(lines), i, lines[i]),
		"line swapped":          slices.Insert(slices.Clone(without), max(0, i-1), lines[i]),
		"line moved to the end": append(slices.Clone(without), lines[i]),
	} {
		m.put(b, form.Member, strings.Join(changed, ""), place, what+", number kept")
		m.numbered(b, form, changed, place, what)
	}
}

// numbered tries lines with the seq of their places.
func (m *mutants) numbered(b *base, form schemas.Form, lines []string, place, what string) {
	var text strings.Builder
	for i, line := range lines {
		before, rest, _ := strings.Cut(line, `"seq":`)
		text.WriteString(before + `"seq":` + fmt.Sprint(i) + rest[strings.IndexAny(rest, ",}"):])
	}
	m.put(b, form.Member, text.String(), place, what)
}

// renamed is a line of another archive as a line of this one.
func renamed(b *base, o *object) string {
	id := slices.Index(o.keys, "run_id")
	other := &object{o.keys, slices.Clone(o.values)}
	man, err := schemas.ParseManifest([]byte(b.members[bundle.ManifestName]))
	if err != nil {
		panic(err)
	}
	other.values[id] = man.RunID
	return render(other) + "\n"
}

// extra marks the places of mutants that an ordinary run does not make.
const extra = "(-mutants) "

// compareAccepted compares what was accepted with the list. A row of the list is a place, what
// is done there, separated by |, and the reason.
func compareAccepted(t *testing.T, accepted map[[2]string]found) {
	const unexplained = "UNEXPLAINED"
	rows := map[[2]string][]string{} // place and reason → what
	add := func(at, what, why string) { rows[[2]string{at, why}] = append(rows[[2]string{at, why}], what) }
	why := map[[2]string]string{}
	for line := range strings.Lines(string(testkit.Read(t, acceptedFile))) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(cells) != 3 {
			continue
		}
		at, deep := strings.CutPrefix(cells[0], extra)
		for what := range strings.SplitSeq(cells[1], " | ") {
			why[[2]string{at, what}] = cells[2]
			switch _, still := accepted[[2]string{at, what}]; {
			case deep && !*everyMutant:
				if !still {
					add(cells[0], what, cells[2])
				}
			case !still:
				t.Errorf("%s: %s is refused now, and is on the list of what is accepted (-update takes it off)", at, what)
			}
		}
	}
	for key, f := range accepted {
		reason := why[key]
		if reason == "" || reason == unexplained {
			t.Errorf("%s: %s is accepted, as in %s: nothing says why", key[0], key[1], f.archive)
			reason = unexplained
		}
		if !f.ordinary {
			key[0] = extra + key[0]
		}
		add(key[0], key[1], reason)
	}
	if testkit.Update() {
		writeAccepted(t, rows)
	}
}

func writeAccepted(t *testing.T, rows map[[2]string][]string) {
	list := []string{}
	for row, whats := range rows {
		slices.Sort(whats)
		list = append(list, row[0]+"\t"+strings.Join(whats, " | ")+"\t"+row[1]+"\n")
	}
	slices.Sort(list)
	testkit.Write(t, acceptedFile, []byte("# Changes of good archives that runner-verify accepts: the place, what is done there, and why nothing in the archive contradicts it.\n"+
		"# TestMutants compares this list with what is accepted; -update rewrites it and keeps the reasons.\n"+strings.Join(list, "")))
}
