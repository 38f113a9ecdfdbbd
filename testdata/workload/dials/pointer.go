//go:build linux

package main

import "unsafe"

func pointer(b *byte) uintptr { return uintptr(unsafe.Pointer(b)) }
