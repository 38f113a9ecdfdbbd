package emulated

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestNewest(t *testing.T) {
	files := fstest.MapFS{}
	if _, err := Newest(files); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	for _, name := range []string{"6.9", "6.18"} {
		files[FileName(name)] = &fstest.MapFile{Data: Result{Kernel: name, Rows: []Row{{What: "a", Value: "1.20"}}}.Encode()}
	}
	files["6.19.1-some-cpu.json"] = &fstest.MapFile{Data: []byte("{}")} // of a real machine
	r, err := Newest(files)
	if err != nil || r.Kernel != "6.18" {
		t.Fatal(r, err)
	}
	if x, ok := r.Find("a"); !ok || x.Value != "1.20" {
		t.Error(x, ok)
	}
	if x, ok := r.Find("b"); ok {
		t.Error(x)
	}
	for name, text := range map[string]string{"unknown key": `{"kernel":"7.0","shape":1}`, "of another kernel": `{"kernel":"7.1"}`, "no JSON": "x"} {
		files[FileName("7.0")] = &fstest.MapFile{Data: []byte(text)}
		if r, err := Newest(files); err == nil {
			t.Errorf("%s was accepted: %+v", name, r)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"6.9", "6.18", -1}, {"7.3", "6.18", 1}, {"7.3", "7.3", 0}, {"7", "7.1", -1}} {
		if got := Compare(c.a, c.b); got != c.want {
			t.Errorf("Compare(%s, %s) = %d, expected %d", c.a, c.b, got, c.want)
		}
	}
}
