//go:build unix

package evidence

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestForeign: of an input that cannot be an archive, however long, no more than the beginning is read, and the reason is that of runner-verify.
func TestForeign(t *testing.T) {
	real(t)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	random := make([]byte, 4*firstLook)
	rand.Read(random)
	random[0] = 'x' // and not the beginning of a gzip stream
	_, err := z.Write(random)
	testkit.Must(t, err)
	testkit.Must(t, z.Close())
	for name, what := range map[string][]byte{"zeros": make([]byte, 512), "random": random, "lines": []byte("{\"schema\":\"x\"}\n"), "gzip": zipped.Bytes()} {
		in := &testkit.Endless{T: t, What: string(what), Most: 16 * firstLook}
		app := tool.App{Name: "runner-test", Usage: "\nusage: runner-test FILE\n", Run: func(ctx context.Context, env *tool.Env) error {
			_, err := Open(ctx, env)
			return err
		}}
		var errs bytes.Buffer
		code := app.Call(t.Context(), in, io.Discard, &errs, []string{"-"})
		if code != tool.ExitInput || !strings.Contains(errs.String(), "archive.container: not an archive") {
			t.Errorf("%s: exit %d: %s", name, code, &errs)
		}
	}
}
