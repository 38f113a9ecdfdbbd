package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHidden: the server runs as the same user, but can access neither the log's
// descriptor nor the proxy's memory.
func TestHidden(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := proxyCommand(t, dir, allowAll)
	if os.Geteuid() == 0 { // root can access everything, so become another user
		self, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		c.Path = filepath.Join(dir, "proxy")
		if err := os.WriteFile(c.Path, self, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{dir, filepath.Join(dir, "policy.yaml"), c.Path} {
			if err := os.Chown(f, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	c.Args = append(c.Args[:len(c.Args)-1], "/bin/sh", "-c", `ls /proc/$PPID/fd >seen 2>&1; cat /proc/$PPID/mem >>seen 2>&1; ls -l /proc/self/fd >own`)
	c.Stdin = strings.NewReader("")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	b, _ := os.ReadFile(filepath.Join(dir, "seen"))
	if strings.Count(string(b), "Permission denied") != 2 {
		t.Errorf("the server saw %s", b)
	}
	own, err := os.ReadFile(filepath.Join(dir, "own"))
	if err != nil || strings.Contains(string(own), dir+"/log") || strings.Contains(string(own), "policy.yaml") {
		t.Errorf("%v, the server has the descriptors %s", err, own)
	}
}
