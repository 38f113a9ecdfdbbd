package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

const oneKernel = `[{"name":"6.1","stands_for":"Debian 12","arch":"amd64","line":"linux-image-6\\.1\\.0-[0-9]+-cloud-amd64",
"image":{"package":"linux-image-6.1.0-56-cloud-amd64","version":"6.1.192-2","sha256":"` + zeros + `"}}]`

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// TestList: the committed list is well-formed, and names what the lane is for.
func TestList(t *testing.T) {
	b, err := os.ReadFile("kernels.json")
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseList(b)
	if err != nil {
		t.Fatal(err)
	}
	if string(encodeList(list)) != string(b) {
		t.Error("kernels.json is not as -repin writes it")
	}
	seen := map[string]bool{}
	inCI := 0
	for _, k := range list {
		seen[k.Arch], seen["variant "+k.Variant] = true, true
		if k.CI {
			inCI++
		}
	}
	for _, want := range []string{"amd64", "arm64", "variant rt", "variant lockdown", "variant nobtf", "variant cgroup1"} {
		if !seen[want] {
			t.Errorf("no kernel is %s", want)
		}
	}
	if inCI != 3 {
		t.Errorf("%d kernels are for .ci/run, want 3", inCI)
	}
}

func TestParseList(t *testing.T) {
	if list, err := parseList([]byte(oneKernel)); err != nil || len(list) != 1 || list[0].Variant != guest.Plain {
		t.Fatal(list, err)
	}
	for name, edit := range map[string][2]string{
		"unknown key":       {`"arch"`, `"shape":1,"arch"`},
		"unknown arch":      {`"amd64","line"`, `"mips","line"`},
		"unknown variant":   {`"arch"`, `"variant":"fast","arch"`},
		"no name":           {`"6.1"`, `""`},
		"name with a slash": {`"6.1"`, `"../6.1"`},
		"stands for none":   {`"Debian 12"`, `""`},
		"not of the line":   {`linux-image-6.1.0`, `linux-image-6.2.0`},
		"bad expression":    {`[0-9]+`, `[0-9`},
		"option as package": {`"linux-image-6.1.0-56-cloud-amd64"`, `"-o"`},
		"bad version":       {`6.1.192-2`, `6.1 192`},
		"short digest":      {zeros, zeros[1:]},
		"two lists":         {`]`, `][]`},
		"empty":             {oneKernel, `[]`},
		"twice":             {oneKernel, strings.TrimSuffix(oneKernel, "]") + "," + strings.TrimPrefix(oneKernel, "[")},
	} {
		text := strings.Replace(oneKernel, edit[0], edit[1], 1)
		if name == "two lists" {
			text = oneKernel + "[]"
		}
		if text == oneKernel {
			t.Errorf("%s: nothing was changed", name)
		}
		if list, err := parseList([]byte(text)); err == nil {
			t.Errorf("%s was accepted: %+v", name, list)
		}
	}
}

func TestChoose(t *testing.T) {
	list := []kernel{{Name: "6.1", CI: true}, {Name: "6.12"}, {Name: "7.3", CI: true}}
	for names, want := range map[string]string{"": "6.1 6.12 7.3", "6.12": "6.12", "7.3 6.1": "7.3 6.1", "ci": "6.1 7.3"} {
		chosen, err := choose(list, strings.Fields(names))
		var got []string
		for _, k := range chosen {
			got = append(got, k.Name)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q gives %q, %v", names, got, err)
		}
	}
	if _, err := choose(list, []string{"5.4"}); err == nil {
		t.Error("an unknown kernel was accepted")
	}
}

// TestShell: the pinned shell is well-formed.
func TestShell(t *testing.T) {
	b, err := os.ReadFile("shell.json")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := parseShell(b); err != nil || p.Package != "busybox-static" {
		t.Error(p, err)
	}
	if _, err := parseShell([]byte(`{"package":"-o","version":"1","sha256":"` + zeros + `"}`)); err == nil {
		t.Error("a bad package was accepted")
	}
}

func TestMirrors(t *testing.T) {
	const targets = "http://other.example/debian/ Debian bookworm\nhttp://other.example/debian-security/ Debian bookworm-security\n" +
		"https://vendor.example/apt Vendor stable\n"
	if a, s := mirrorsOf(targets); a != "http://other.example/debian" || s != "http://other.example/debian-security" {
		t.Error(a, s)
	}
	if a, s := mirrorsOf("https://vendor.example/apt Vendor stable\n"); a != standardArchive || s != standardSecurity {
		t.Error(a, s)
	}
}

func TestParseStanzas(t *testing.T) {
	const shown = "Package: a\nVersion: 2-1\nDescription: text\n Package: not a field\nSHA256: " + zeros + "\n\n" +
		"Package: a\nVersion: 1-1\nSHA256: " + zeros + "\n\nPackage: a\nVersion: 2-1\nSHA256: " + zeros + "\n\nPackage: b\nVersion: 1\n"
	packs := parseStanzas(shown)
	if len(packs) != 2 || packs[0] != (pack{"a", "2-1", zeros}) || packs[1].Version != "1-1" {
		t.Errorf("%+v", packs)
	}
}

func TestLongestFirst(t *testing.T) {
	list := []kernel{{Name: "5.10", Arch: "amd64"}, {Name: "6.1", Arch: "amd64", CI: true}, {Name: "6.16", Arch: "amd64"}, {Name: "a", Arch: "arm64"}, {Name: "7.3", Arch: "amd64", CI: true}}
	if got := longestFirst(list); !slices.Equal(got, []int{4, 1, 3, 2, 0}) {
		t.Errorf("%v", got)
	}
}
