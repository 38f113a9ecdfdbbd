//go:build linux

package main

// sizes are how much is measured in the rows of names.go.
type sizes struct {
	opens, names, forks, spawns int
	together                    int   // opens by several processes, or beside the runner's own work
	disk                        int   // opens, for the room that they take
	scale                       []int // opens, for what each costs
	outsideCalls, outsideOpens  int
	own                         []int // runs with probes of their own, beside a process outside
	leafDirs                    int   // of the tree for grep
}

var (
	wholeSizes = sizes{opens: million, names: million, forks: 100_000, spawns: 2000, together: million, disk: 10 * million, scale: []int{10_000, 100_000, million, 10 * million},
		outsideCalls: 2 * million, outsideOpens: 200_000, own: runCounts, leafDirs: leafDirs}
	// An emulated machine takes many times longer for all of it, and most for what starts programs.
	// What is beside the start of the runner's stages must take longer than that.
	emulatedSizes = sizes{opens: 50_000, names: 20_000, forks: 300, spawns: 200, together: 300_000, disk: 300_000,
		outsideCalls: 600_000, outsideOpens: 20_000, own: runCounts[:1], leafDirs: 1}
)

// sizes are those of this run.
func (b *bench) sizes() sizes {
	s := wholeSizes
	switch {
	case b.lines:
		s = emulatedSizes
	case b.short:
		s.forks, s.disk, s.scale = 10_000, million, s.scale[:3]
	}
	return s
}
