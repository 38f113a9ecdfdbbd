/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The system call that a task is in: whether it is one of a 32-bit program, its number and its arguments. */
#ifndef RUNNER_CALL_H
#define RUNNER_CALL_H

#include "memory.h"

INLINE bool is_compat(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & 2; /* TS_COMPAT */
#else
	return task->thread_info.flags & (1 << 22); /* TIF_32BIT */
#endif
}

INLINE u64 call_number(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (u32)regs->orig_ax; /* the kernel looks at no more than these bits */
#else
	return (u32)regs->syscallno;
#endif
}

/* The arguments of a call, and in the places CWD and NO what stands there. */
INLINE void read_args(struct pt_regs *regs, bool compat32, u64 *a)
{
#if defined(__TARGET_ARCH_x86)
	if (compat32) {
		a[0] = (u32)regs->bx;
		a[1] = (u32)regs->cx;
		a[2] = (u32)regs->dx;
		a[3] = (u32)regs->si;
		a[4] = (u32)regs->di;
		a[5] = (u32)regs->bp;
	} else {
		a[0] = regs->di;
		a[1] = regs->si;
		a[2] = regs->dx;
		a[3] = regs->r10;
		a[4] = regs->r8;
		a[5] = regs->r9;
	}
#else
	a[0] = regs->orig_x0; /* x0 holds the return value by now */
	a[1] = regs->regs[1];
	a[2] = regs->regs[2];
	a[3] = regs->regs[3];
	a[4] = regs->regs[4];
	a[5] = regs->regs[5];
	if (compat32)
		for (int i = 0; i < 6; i++)
			a[i] = (u32)a[i];
#endif
	a[6] = (u64)AT_FDCWD;
	a[7] = 0;
}

INLINE u64 first_argument(struct pt_regs *regs, bool compat32)
{
#if defined(__TARGET_ARCH_x86)
	return compat32 ? (u32)regs->bx : regs->di;
#else
	return compat32 ? (u32)regs->orig_x0 : regs->orig_x0;
#endif
}

INLINE u64 second_argument(struct pt_regs *regs, bool compat32)
{
#if defined(__TARGET_ARCH_x86)
	return compat32 ? (u32)regs->cx : regs->si; /* a 64-bit program can leave more there, which the kernel does not look at */
#else
	return compat32 ? (u32)regs->regs[1] : regs->regs[1];
#endif
}

#endif
