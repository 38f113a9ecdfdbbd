//go:build linux

package cmd_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestSoakWrappers: a wrapper is a fault like any other words before the command, and the network that it takes away is the only
// difference.
func TestSoakWrappers(t *testing.T) {
	requireBPF(t)
	testkit.Programs(t, "a command that needs the network", "curl")
	if err := netWorks(); err != nil {
		testkit.Missing(t, "networks of commands", err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("here")) }))
	defer s.Close()
	dir := t.TempDir()
	cmd := command(t, "runner-soak", "--iterations", "2", "--fault", "no-net=runner-net deny --", "--fault", "boxed=runner-box --", "--surface", filepath.Join(dir, "surface.json"), "--dir", filepath.Join(dir, "runs"), "--", "curl", "-sf", "-o", "/dev/null", s.URL)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	o := call(t, cmd)
	var surface struct {
		Faults []struct {
			Name    string
			Results struct{ Runs, Passes int }
		}
	}
	testkit.Must(t, json.Unmarshal(testkit.Read(t, filepath.Join(dir, "surface.json")), &surface))
	passes := map[string]int{}
	for _, f := range surface.Faults {
		passes[f.Name] = f.Results.Passes
	}
	if len(passes) != 3 || passes["none"] != 2 || passes["no-net"] != 0 || passes["boxed"] != 2 {
		t.Errorf("%v: %v", passes, o)
	}
	a := openArchive(t, filepath.Join(dir, "runs/no-net/0001.tar.gz"))
	if a.members["run/net.json"] == nil {
		t.Error("the archive does not say that runner-net was in force")
	}
}
