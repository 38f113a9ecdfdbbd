package tool

import (
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Background gives the whole process the lowest priority: nice 19 and, if the kernel
// allows it, SCHED_IDLE. This only keeps the processor free for the measured program. A
// failure costs speed and no events, so it is not reported.
func Background() { eachThread("self", backgroundThread) }

// BackgroundChild is Background for a process that was just started, if NormalChild can take it back: beside programs that want all
// processors, a process with the lowest priority never gets to its end. The caller waits for the process later.
func BackgroundChild(pid int) {
	if canRaise() {
		eachThread(strconv.Itoa(pid), backgroundThread)
	}
}

// NormalChild gives a process the priority that this one was started with, as SCHED_BATCH: stages that feed each other then do not
// interrupt each other for each piece.
func NormalChild(pid int) {
	if !canRaise() {
		return
	}
	a := *ownPriority()
	if a.Policy == unix.SCHED_NORMAL {
		a.Policy = unix.SCHED_BATCH
	}
	eachThread(strconv.Itoa(pid), func(tid int) { unix.SchedSetAttr(tid, &a, 0) })
}

// Foreground sets the highest priority (nice -20), for the one stage that loses events
// when it is late. Without CAP_SYS_NICE it changes nothing; lost events are counted as
// usual.
func Foreground() { eachThread("self", foregroundThread) }

// ForegroundChild is Foreground for a process that was just started, and has one thread. The caller waits for the process later.
func ForegroundChild(pid int) { foregroundThread(pid) }

func backgroundThread(tid int) {
	unix.Setpriority(unix.PRIO_PROCESS, tid, 19)
	unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Nice: 19}, 0)
}

func foregroundThread(tid int) { unix.Setpriority(unix.PRIO_PROCESS, tid, -20) }

// ownPriority is that of this process, nil if it cannot be told.
var ownPriority = sync.OnceValue(func() *unix.SchedAttr {
	a, err := unix.SchedGetAttr(os.Getpid(), 0)
	if err != nil {
		return nil
	}
	return a
})

// canRaise reports whether this process may give back a priority that it took away. It tries: what decides is the right to do so
// outside of every user namespace, or a limit (RLIMIT_NICE, sched(7)). Where /proc is that of another pid namespace, it cannot say
// which threads a child has.
var canRaise = sync.OnceValue(func() bool {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) || ownPriority() == nil {
		return false
	}
	can := make(chan bool)
	go func() {
		runtime.LockOSThread() // and the thread ends with this goroutine
		backgroundThread(0)
		can <- unix.SchedSetAttr(0, ownPriority(), 0) == nil
	}()
	return <-can
})

// eachThread sets something for each thread of a process.
func eachThread(pid string, set func(tid int)) {
	// Both settings apply to one thread, and a new thread inherits them from its creator.
	// The second round reaches threads that were created during the first.
	for range 2 {
		dir, err := os.ReadDir("/proc/" + pid + "/task")
		if err != nil {
			if tid, err := strconv.Atoi(pid); err == nil {
				set(tid)
			} else {
				set(0)
			}
			return
		}
		for _, d := range dir {
			if tid, err := strconv.Atoi(d.Name()); err == nil {
				set(tid)
			}
		}
	}
}
