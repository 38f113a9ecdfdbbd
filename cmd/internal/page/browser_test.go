package page

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/schemas/testkit/browser"
)

// browse opens a page in a browser. It returns how long the page took to be ready.
func browse(t *testing.T, page []byte) (*browser.Browser, time.Duration) {
	t.Helper()
	b := browser.Start(t, "the page of runner-show in a browser")
	file := filepath.Join(t.TempDir(), "page.html")
	testkit.Write(t, file, page)
	return b, b.Open("file://"+file, `document.querySelector("#operations-table [role=status]").textContent !== ""`)
}

// quiet: the browser asked for nothing but the page, and had nothing to complain about.
func quiet(t *testing.T, b *browser.Browser) {
	t.Helper()
	if len(b.Requested) != 1 || !strings.HasPrefix(b.Requested[0], "file://") {
		t.Errorf("the page asked for %q", b.Requested)
	}
	if len(b.Complaints) > 0 {
		t.Errorf("the browser complains: %q", b.Complaints)
	}
}
