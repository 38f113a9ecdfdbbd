//go:build !unix

package main

import (
	"errors"
	"os"
)

type logOS struct{ *os.File }

func openLog(file string, _ int) (logFile, error) {
	if file == "" {
		return nil, errors.New("this system does not support --log fd:N: name a file")
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	return logOS{f}, err
}

func (l logOS) writeLine(b []byte) (int, error) { return l.Write(b) }
