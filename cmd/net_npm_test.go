//go:build linux

package cmd_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// registry serves one package, as the registry of npm does.
func registry(t *testing.T) *httptest.Server {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"package/package.json": `{"name":"held","version":"1.2.3","main":"index.js"}`, "package/index.js": "module.exports = 'still';\n"} {
		testkit.Must(t, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644}))
		_, err := w.Write([]byte(text))
		testkit.Must(t, err)
	}
	testkit.Must(t, w.Close())
	testkit.Must(t, z.Close())
	sum := sha512.Sum512(b.Bytes())
	about, err := json.Marshal(map[string]any{"name": "held", "dist-tags": map[string]string{"latest": "1.2.3"}, "versions": map[string]any{"1.2.3": map[string]any{"name": "held", "version": "1.2.3",
		"dist": map[string]string{"tarball": "http://registry.test/held/-/held-1.2.3.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}}}})
	testkit.Must(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("/held", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(about)
	})
	mux.HandleFunc("/held/-/held-1.2.3.tgz", func(w http.ResponseWriter, _ *http.Request) { w.Write(b.Bytes()) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// TestNetNPM: npm install from a registry is recorded, and repeated without it: the same files, and a lock file with the same digests.
func TestNetNPM(t *testing.T) {
	testkit.Programs(t, "the installation of npm packages through runner-net", "npm", "node")
	if err := netWorks(); err != nil {
		testkit.Missing(t, "networks of commands", err)
	}
	s := registry(t)
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(dir+"/allow.yaml", []byte("schema: runner.net_allow.v0\nrules:\n- {id: registry, host: registry.test, methods: [GET]}\n"), 0o644))
	install := func(name string, args ...string) map[string]string {
		t.Helper()
		app := filepath.Join(dir, name)
		testkit.Must(t, os.Mkdir(app, 0o755))
		testkit.Must(t, os.WriteFile(app+"/package.json", []byte(`{"name":"app","version":"1.0.0","dependencies":{"held":"^1.0.0"}}`), 0o644))
		cmd := command(t, "runner-net", append(args, "--", "npm", "install", "--no-audit", "--no-fund", "--registry", "http://registry.test/")...)
		cmd.Dir = app
		cmd.Env = append(os.Environ(), "HOME="+dir, "npm_config_cache="+app+"/.cache", "npm_config_update_notifier=false")
		if o := call(t, cmd); o.code != 0 || !strings.Contains(o.stdout, "added 1 package") {
			t.Fatal(o)
		}
		files := map[string]string{}
		for _, file := range []string{"package-lock.json", "node_modules/held/package.json", "node_modules/held/index.js"} {
			b, err := os.ReadFile(filepath.Join(app, file))
			testkit.Must(t, err)
			files[file] = string(b)
		}
		return files
	}
	first := install("first", "record", "--allow", dir+"/allow.yaml", "--upstream", "registry.test:80="+s.Listener.Addr().String(), "-o", dir+"/record")
	s.Close()
	again := install("again", "replay", dir+"/record")
	for name, text := range first {
		if again[name] != text {
			t.Errorf("%s: %s\nand %s", name, text, again[name])
		}
	}
	if !strings.Contains(first["package-lock.json"], "http://registry.test/held/-/held-1.2.3.tgz") {
		t.Errorf("%s", first["package-lock.json"])
	}
}
