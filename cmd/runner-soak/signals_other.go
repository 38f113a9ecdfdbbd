//go:build !unix

package main

import "os"

// terminate ends runner-exec: this system has no signal that asks for it.
var terminate = os.Kill
