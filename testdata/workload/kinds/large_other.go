//go:build !arm64

package main

const largeFile = 0o100000 // O_LARGEFILE, which Go calls 0 on 64-bit machines
