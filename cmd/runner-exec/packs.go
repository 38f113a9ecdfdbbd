package main

import (
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// packFiles are the packs that were read from files, as they were read: the command could change a file
// before runner-pack reads it.
func (o *Options) packFiles() (files []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
		}
	}()
	for _, p := range o.Packs {
		if p.Text == nil {
			continue
		}
		f, err := tool.Nameless()
		if err != nil {
			return files, err
		}
		files = append(files, f)
		if _, err = f.Write(p.Text); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			return files, tool.ScratchError(err)
		}
	}
	return files, nil
}
