package tree

import (
	"fmt"
	"os"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// BenchmarkScan reads a tree of 10,000 small files.
func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	for i := range 10 {
		testkit.Must(b, os.Mkdir(fmt.Sprintf("%s/%d", dir, i), 0o755))
		for j := range 1000 {
			testkit.Must(b, os.WriteFile(fmt.Sprintf("%s/%d/%d", dir, i, j), make([]byte, j), 0o644))
		}
	}
	for b.Loop() {
		list, err := Scan(dir, Options{})
		if err != nil || len(list) != 10_010 {
			b.Fatal(len(list), err)
		}
	}
}
