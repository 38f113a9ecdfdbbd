package tool

import (
	"runtime"
	"runtime/debug"
)

// CollectLate keeps the collector away until there are 12 MiB of memory to look through, and then has it run when there is
// percent more (debug.SetGCPercent). A stage of a small run never comes that far: to collect would take much of its time.
func CollectLate(percent int) {
	debug.SetGCPercent(300) // of the 4 MiB from which it counts
	first := new([64]*byte)
	runtime.AddCleanup(first, func(percent int) { debug.SetGCPercent(percent) }, percent) // the first collection finds that nobody needs it
}
