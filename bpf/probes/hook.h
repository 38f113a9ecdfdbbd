/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Who calls an address hook, and how. The hooks run for the *socket's* cgroup, and a socket can
 * be handed to another process. */
#ifndef RUNNER_HOOK_H
#define RUNNER_HOOK_H

#include "scope.h"
#include "sysnum.h"

enum { IO_URING_ENTER = 426, PF_IO_WORKER = 0x10 }; /* the call has this number everywhere */

/* Is the current task none of the scope? Then what it does is counted, and is no line. A kernel
 * thread is foreign too: one makes the further connections of MPTCP. */
INLINE bool foreign(struct counters *c)
{
	if (in_scope(cgroup_of(bpf_get_current_task()), run_of_counters(c)))
		return false;
	__sync_fetch_and_add(&c->foreign, 1);
	return true;
}

/* Does the hook run for a request of io_uring? Then it is inside of io_uring_enter, in a worker,
 * or after the end of any other call. */
INLINE bool for_ring(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = bpf_task_pt_regs(task);
	u32 flags = 0;

	READ(flags, task, flags);
	if (flags & PF_IO_WORKER)
		return true;
#if defined(__TARGET_ARCH_x86)
	u64 nr = 0;
	s64 ax = 0;

	READ(nr, regs, orig_ax);
	READ(ax, regs, ax); /* as long as the call runs */
	return (u32)nr % X32_CALLS == IO_URING_ENTER || (s32)ax != -ENOSYS;
#else
	s32 nr = 0;
	u64 first = 0, x0 = 0;

	READ(nr, regs, syscallno);
	READ(first, regs, orig_x0);
	READ(x0, regs, regs[0]); /* becomes the result at the call's end */
	return nr == IO_URING_ENTER || first != x0;
#endif
}

#endif
