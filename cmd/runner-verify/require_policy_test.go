package main

import (
	"strings"
	"testing"
)

// TestRequirePolicy: that rules were enforced can be demanded, and by the file that they are from.
func TestRequirePolicy(t *testing.T) {
	other := "sha256:" + strings.Repeat("0", 64)
	enforced, plain := layered().digest(t).tar(t), sample().digest(t).tar(t)
	for _, c := range []struct {
		in     []byte
		demand string
		code   int
	}{
		{enforced, "network_policy=enforced,file_policy=enforced", 0},
		{enforced, "network_policy=" + testDigest + ",file_policy=" + testDigest, 0},
		{enforced, "network_policy=" + other, 1},
		{enforced, "network_policy=none", 1},
		{enforced, "file_policy=none", 1},
		{plain, "network_policy=none,file_policy=none", 0},
		{plain, "network_policy=enforced", 1},
		{plain, "file_policy=" + testDigest, 1},
		{plain, "file_policy=present", 2},
		{plain, "network_policy=sha256:0", 2},
	} {
		if code, out, errs := call(c.in, "--require", c.demand); code != c.code {
			t.Errorf("%s: exit %d, want %d: %s%s", c.demand, code, c.code, out, errs)
		}
	}
}
