package tool

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// schedIdle is SCHED_IDLE of sched(7): run only when nothing else can.
const schedIdle = 5

// Background makes the whole process yield the processor to everyone else: nice
// 19 and, where the kernel allows it, SCHED_IDLE. It is a courtesy to the
// measured program: a failure costs speed, never evidence, so it is not reported.
func Background() { eachThread(backgroundThread) }

// Foreground asks for the processor before everything else (nice -20), for the one
// stage that loses events when it is late. Without CAP_SYS_NICE nothing
// changes; what is lost then is counted as usual.
func Foreground() {
	eachThread(func(tid int) { unix.Setpriority(unix.PRIO_PROCESS, tid, -20) })
}

func eachThread(set func(tid int)) {
	// Both settings belong to a thread, and threads inherit them from the one
	// that made them. Two rounds catch a thread made during the first.
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
