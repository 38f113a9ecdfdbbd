// Package proc is the process API: the bytes of a request, its limits and its result
// (schemas/PROC.md), the policies that decide requests, and running one.
//
// The encodings are little-endian and have no padding. Whatever can be read in more than
// one way is refused.
package proc
