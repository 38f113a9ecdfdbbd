/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Is a task in a 32-bit system call? */
#ifndef RUNNER_COMPAT_H
#define RUNNER_COMPAT_H

#include "memory.h"

INLINE bool is_compat(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & 2; /* TS_COMPAT */
#else
	return task->thread_info.flags & (1 << 22); /* TIF_32BIT */
#endif
}

#endif
