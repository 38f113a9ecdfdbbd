//go:build !linux

// Bench measures what measuring costs, which needs the kernel that is measured.
package main

import "fmt"

func main() { fmt.Println("bench: NOT MEASURED: there is no kernel capture but on Linux") }
