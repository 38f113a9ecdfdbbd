package main

import "syscall"

// terminate asks the tool to end. What it has begun it ends tidily, so that the same call goes on.
const terminate = syscall.SIGTERM
