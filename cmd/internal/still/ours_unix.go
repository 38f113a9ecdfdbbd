//go:build unix

package still

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/runner-evidence/runner/schemas"
)

// Ours makes a directory that nobody else may write, or takes one that is there and is.
func Ours(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory of our own: remove it", schemas.Text(dir))
	}
	return nil
}
