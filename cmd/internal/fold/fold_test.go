package fold

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const hex64 = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// Names that programs made in real runs, and their neighbours that are no such names.
func TestFolds(t *testing.T) {
	f, err := New([]string{"home=/root", "workspace=/root/w/", "scratch=/srv/job.*/x"})
	testkit.Must(t, err)
	for in, want := range map[string]string{
		"/root/w/a": "<workspace>/a", "/root/x": "<home>/x", "/rooted": "/rooted", "/proc/12/task/13/fd": "/proc/<pid>/task/<pid>/fd",
		"<workspace>/a": `\x3cworkspace>/a`, "/tmp/tmp.AbCdEf1234/x": "/tmp/tmp.<temp>/x", "/tmp/evil": "/tmp/evil", "127.0.0.1:40000": "127.0.0.1:<port>",
		"127.0.0.1:8080": "127.0.0.1:8080", "10.0.0.1:40000": "10.0.0.1:40000", "unix:/root/s": "unix:<home>/s", "/tmp/go-build123/b001/x": "/tmp/go-build<temp>/b001/x",
		"/root/w/.git/objects/ab/tmp_obj_AbCd12": "<workspace>/.git/objects/<object>/tmp_obj_<temp>",
		"/srv/job.12/x/y":                        "<scratch>/y", "/srv/job.12/x": "<scratch>", "/srv/job.12/xy": "/srv/job.12/xy", "/srv/job.1/2/x": "/srv/job.1/2/x",
		"/tmp/tmp.fjrSEIVnpY.log": "/tmp/tmp.<temp>.log", "/tmp/tmp3hyl7962_a.json": "/tmp/tmp<temp>_a.json", "/tmp/tmpfiles.d": "/tmp/tmpfiles.d",
		"/tmp/cgo-gcc-input-1106350203.c": "/tmp/cgo-gcc-input<temp>.c", "/tmp/cgo-gcc-input-1106350203": "/tmp/cgo-gcc-input<temp>",
		"/tmp/gc/00/" + hex64 + "-a": "/tmp/gc/<entry>", "/tmp/gc/cc/" + hex64 + "-d/runner-show": "/tmp/gc/<entry>/runner-show", "/x/go-build/0d": "/x/go-build/<entry>", "/x/gc/0d": "/x/gc/0d",
		"/n/_logs/2026-11-22T23_22_11_226Z-debug-0.log": "/n/_logs/<time>-debug-0.log", "/n/_logs/today": "/n/_logs/today",
		"/c/.git/th5aYo7": "/c/.git/t<temp>", "/c/bare.git/th5aYo7": "/c/bare.git/t<temp>", "/c/.git/testing": "/c/.git/t<temp>", "/c/.git/tags": "/c/.git/tags",
		"/c/objects/tmp_objdir-incoming-Ab12Cd/pack":                                   "/c/objects/tmp_objdir-incoming-<temp>/pack",
		"/c/objects/pack/.tmp-28944-pack-57c08e4c7cafbfc9b501ca9f9bcff558e37ff3f2.idx": "/c/objects/pack/.tmp-pack-<object>.idx", "/c/objects/pack/pack-" + hex64 + ".pack": "/c/objects/pack/pack-<object>.pack",
		"/c/objects/pack/tmp_idx_Ab12Cd": "/c/objects/pack/tmp_idx_<temp>", "/c/.git/info/refs_hHSkfX": "/c/.git/info/refs_<temp>", "/c/.git/info/refs": "/c/.git/info/refs",
		"/dev/shm/sem.AQpU8i": "/dev/shm/sem.<temp>", "/dev/shm/sem.mp-0jyqt7af": "/dev/shm/sem.<temp>", "/dev/shm/sem.ninechars": "/dev/shm/sem.ninechars", "/dev/shm/sem.mine": "/dev/shm/sem.mine", "/tmp/pymp-abcd_123/l": "/tmp/pymp-<temp>/l",
		"/tmp/go-build12/b134/_cgo_4.o": "/tmp/go-build<temp>/b134/_cgo_<number>.o", "/tmp/tmp.CeAAlqwlG3.tar.gz": "/tmp/tmp.<temp>.tar.gz",
		"/tmp/runner-run_6448bf666515cab20af40355ff86dd90/policy-6VHQI74TXGT7Y72MWLRKVNJDKM.ndjson": "/tmp/runner-<run>/policy-<temp>.ndjson", "/tmp/runner-run_mine/x": "/tmp/runner-run_mine/x",
		"/w/sedeDUVMD": "/w/sed<temp>", "/w/sediment": "/w/sediment", "/tmp/sort1hChpe": "/tmp/sort<temp>", "/w/sort1hChpe": "/w/sort1hChpe",
		"[::]:43945": "[::]:<port>", "0.0.0.0:60001": "0.0.0.0:<port>", "0.0.0.0:443": "0.0.0.0:443", "unix:@00a1f": "unix:@<number>", "unix:@dbus": "unix:@dbus",
		"/tmp/0p_m7akh": "/tmp/0p_m7akh",
	} {
		if got := f.Value(schemas.ItemRead, in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		found := f.parts.find(in)
		for i := range rules { // the parts are a shorter look, and never hide a match
			if r := &rules[i]; r.pattern.MatchString(in) && found>>i&1 == 0 {
				t.Errorf("%s: %s is folded without %s", r.name, in, r.parts)
			}
		}
	}
	for in, want := range map[string]string{"/tmp/0p_m7akh": "/tmp/<temp>", "/tmp/0p_m7akh/x": "/tmp/0p_m7akh/x", "/tmp/0p_m7akhx": "/tmp/0p_m7akhx"} {
		if got := f.Value(schemas.ItemCreate, in); got != want {
			t.Errorf("made: %s: %s, want %s", in, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for i := range rules {
		if r := &rules[i]; ruleOf(r.name) != r || r.name == none || !foldName.MatchString(r.name) {
			t.Errorf("%s is not a name of its own", r.name)
		}
	}
}

func TestValuesOfFold(t *testing.T) {
	for _, c := range []struct {
		values []string
		says   string
	}{
		{[]string{"pts", "none"}, "expected one of them"}, {[]string{"ptss"}, "expected none, a rule"}, {[]string{"pts=/x"}, "that is no rule"}, {[]string{"a=x"}, "below /"},
		{[]string{"a=/x", "b=/x"}, "twice"}, {[]string{"A=/x"}, "a name of a-z"},
	} {
		if _, err := New(c.values); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.values, err)
		}
	}
	f, err := New([]string{"pts", "a=/x"})
	testkit.Must(t, err)
	if got := strings.Join(f.Names(), " "); got != "pts a" {
		t.Error(got)
	}
	if got := strings.Join(f.WithRules([]string{"mktemp", "other"}).Names(), " "); got != "mktemp a" {
		t.Error(got)
	}
	if f, err = New([]string{none}); err != nil || len(f.Names()) != 0 || f.Value(schemas.ItemRead, "/dev/pts/1<") != `/dev/pts/1\x3c` {
		t.Error(f, err)
	}
}

// TestParts: each part has two bytes or more, there is a bit for each rule, and the look for the parts never hides a match.
func TestParts(t *testing.T) {
	if len(rules) > 64 {
		t.Fatalf("%d rules, expected at most 64", len(rules))
	}
	f := finderOf(Builtin().rules)
	for i := range rules {
		r := &rules[i]
		for _, p := range r.parts {
			if len(p) < 2 {
				t.Errorf("rule %s: the part %q", r.name, p)
			}
			for _, v := range []string{p, "/a" + p, p + "b", "/" + p + "/"} {
				if f.find(v)>>i&1 == 0 {
					t.Errorf("rule %s: %q is not found in %q", r.name, p, v)
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		v := ""
		for range 1 + random.IntN(4) {
			r := &rules[random.IntN(len(rules))]
			v += r.parts[random.IntN(len(r.parts))] + []string{"", "1", "tmp", "/", "-a", "go-build12", "aaaaaa", ".o", "ab/"}[random.IntN(9)]
		}
		found := f.find(v)
		for i := range rules {
			if rules[i].pattern.MatchString(v) && found>>i&1 == 0 {
				t.Errorf("rule %s matches %q, which has none of its parts", rules[i].name, v)
			}
		}
	}
}
