//go:build !unix

package main

import "io"

func readerOf(r io.Reader) io.Reader { return r }
func writerOf(w io.Writer) io.Writer { return w }
