package testkit

import (
	"debug/elf"
	"errors"
	"syscall"
	"testing"
)

// SkipNo32Bit ends a test where err, of starting a program, says that this kernel runs no 32-bit programs: ENOEXEC for a file that is
// a whole program of 386. Of any other file the same error says nothing about the kernel, and is a failure.
func SkipNo32Bit(t testing.TB, program string, err error) {
	t.Helper()
	if !errors.Is(err, syscall.ENOEXEC) {
		return
	}
	f, broken := elf.Open(program)
	Must(t, broken)
	defer f.Close()
	if f.Class != elf.ELFCLASS32 || f.Machine != elf.EM_386 || f.Type != elf.ET_EXEC {
		t.Fatalf("%s: %v, and it is no program of 386: %v", program, err, f.FileHeader)
	}
	Skip(t, "32-bit callers", "this kernel runs no 32-bit programs")
}
