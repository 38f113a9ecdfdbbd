package tool

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// schedIdle is SCHED_IDLE of sched(7): run only when nothing else can.
const schedIdle = 5

// Background gives the whole process the lowest priority: nice 19 and, if the kernel
// allows it, SCHED_IDLE. This only keeps the processor free for the measured program. A
// failure costs speed and no events, so it is not reported.
func Background() { eachThread(backgroundThread) }

// Foreground sets the highest priority (nice -20), for the one stage that loses events
// when it is late. Without CAP_SYS_NICE it changes nothing; lost events are counted as
// usual.
func Foreground() {
	eachThread(func(tid int) { unix.Setpriority(unix.PRIO_PROCESS, tid, -20) })
}

func eachThread(set func(tid int)) {
	// Both settings apply to one thread, and a new thread inherits them from its creator.
	// The second round reaches threads that were created during the first.
	for range 2 {
		dir, err := os.ReadDir("/proc/self/task")
		if err != nil {
			set(0)
			return
		}
		for _, d := range dir {
			if tid, err := strconv.Atoi(d.Name()); err == nil {
				set(tid)
			}
		}
	}
}

func backgroundThread(tid int) {
	unix.Setpriority(unix.PRIO_PROCESS, tid, 19)
	unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedIdle, Nice: 19}, 0)
}
