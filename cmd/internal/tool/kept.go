package tool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// kept are the files that are replaced only if the tool wrote them, by the names that were given. Minutes can be between the look at
// the beginning and the end of a run, so what is replaced is looked at again.
var kept sync.Map // of keeper

type keeper struct {
	what string
	ours func(io.Reader) bool
}

// beforeReplace is called before a file is replaced, for tests.
var beforeReplace = func(path string) {}

// replace gives the file, which has a temporary name, the name of one that is there.
func (a *AtomicFile) replace() error {
	beforeReplace(a.path)
	k, is := kept.Load(a.name)
	if !is {
		return os.Rename(a.temp, a.path)
	}
	return a.replaceOurs(k.(keeper))
}

// mayGo reports whether what is at a place may be replaced; name is what it is called in the error.
func (k keeper) mayGo(at, name string) error {
	st, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && st.Mode()&fs.ModeSymlink != 0: // nothing is lost with it
		return nil
	case err == nil && st.Mode().IsRegular() && st.Size() == 0:
		return nil
	case err == nil && st.Mode().IsRegular():
		if f, err := os.Open(at); err == nil {
			defer f.Close()
			if k.ours(f) {
				return nil
			}
		}
	}
	return fmt.Errorf("somebody else made %s meanwhile, which is not %s: it is kept", shown(name), k.what)
}
