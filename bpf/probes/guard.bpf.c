//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Signals from the scope to the runner's processes, and who those are. */
#include "guard.h"
#ifdef SHARED
#include "marks.h"
#endif

/* Signals that stop or end a process and that the runner does not pass on. */
#define HARMFUL (1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 11 | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 22 | 1 << 24 | 1 << 25 | 1U << 31)

/* SIGTSTP, SIGTTIN and SIGTTOU: the signals of job control. */
#define JOB_CONTROL (1 << 20 | 1 << 21 | 1 << 22)
#define PIDTYPE_PGID 2 /* include/linux/pid_types.h */

/* The process group of a task. */
INLINE u64 group_of(u64 task)
{
	u64 signal = POINTER(task_struct, task, signal);

	return signal ? word(signal + OFFSET(struct signal_struct, pids) + PIDTYPE_PGID * sizeof(u64)) : 0;
}

/* An editor stops its whole process group, as ^Z does, and the kernel that of a background job which wants the terminal. runner-exec is
 * in it, stops with the command and goes on with it. The capture and the stages have groups of their own, and do not stop. */
INLINE bool is_job_control(u32 sig, u64 task)
{
	u64 group;

	if (!(JOB_CONTROL >> sig & 1))
		return false;
	group = group_of(task);
	return group && group == group_of(bpf_get_current_task());
}

SEC("tp_btf/signal_generate")
int on_signal(u64 *ctx)
{
	u32 sig = ctx[0];
	u64 task = 0;

	if (sig > 31 || !(HARMFUL >> sig & 1) || !run_is_known())
		return 0;
	bpf_probe_read_kernel(&task, sizeof(task), ctx + 2);
	if (!observer(task, present_run()) || is_job_control(sig, task))
		return 0;
#ifdef SHARED
	if (!first_at_signal()) /* a run with probes of its own is told by each copy, with its number, and counts one of them */
		return 0;
#endif
	raise(ALARM_SIGNAL, sig);
	return 0;
}

/* The loader runs these two itself, before it loads anything else. */
SEC("raw_tp/sys_enter")
int own_tgid(void *ctx)
{
	return bpf_get_current_pid_tgid() >> 32;
}

SEC("raw_tp/sys_enter")
int parent_tgid(void *ctx)
{
	return tgid_of(POINTER(task_struct, bpf_get_current_task(), real_parent));
}
