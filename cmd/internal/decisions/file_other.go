//go:build !unix

package decisions

import (
	"errors"
	"os"
)

type logOS struct{ *os.File }

// Open opens FILE for appending.
func Open(file string, _ int) (File, error) {
	if file == "" {
		return nil, errors.New("this system does not support --log fd:N: name a file")
	}
	if old, err := os.Open(file); err == nil {
		err = checkBegin(old)
		old.Close()
		if err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	return logOS{f}, err
}

// WriteLine writes one line.
func (l logOS) WriteLine(b []byte) (int, error) { return l.Write(b) }
