/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls that a signal interrupts. The kernel ends such a call with a code of its own, and decides only when it
 * delivers the signal: either the program gets EINTR, or the call starts over by itself. The record of the call
 * is sent at its end, without an outcome. A second record follows only if the program gets EINTR. */
#ifndef RUNNER_INTERRUPT_H
#define RUNNER_INTERRUPT_H

#include "marks.h"

/* include/linux/errno.h and include/uapi/asm-generic/signal-defs.h */
enum {
	ERESTARTSYS = 512,
	ERESTARTNOINTR = 513,
	ERESTART_RESTARTBLOCK = 516,
	SA_RESTART = 0x10000000,
};

INLINE bool restarts(s64 ret)
{
	return ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK;
}

INLINE void keep_interrupted(struct task_struct *task, u32 op, s64 ret, struct counters *c)
{
	struct mark_state *m = mark_of(task);

	if (m) {
		m->interrupted = op << 16 | (u32)-ret;
		m->interrupted_run = run_of_counters(c);
		m->interrupted_life = life_of(m->interrupted_run);
	} else {
		__sync_fetch_and_add(&c->scratch_missing, 1);
	}
}

/* Whether an interrupted call starts over is decided once, by the first handler. Without a handler it
 * does. A copy that runs later finds nothing more to do. */
SEC("tp_btf/signal_deliver")
int on_deliver(u64 *ctx)
{
	struct mark_state *m = bpf_task_storage_get(&marks, bpf_get_current_task_btf(), 0, 0);
	struct k_sigaction *action = (struct k_sigaction *)ctx[2];
	struct counters *c;
	u64 handler = 0, flags = 0;
	u32 code;
	struct rec r;

	if (!m || !m->interrupted)
		return 0;
	c = counters_in(m->interrupted_run, SLOT_DELIVER);
	if (!c || !is_told(m->interrupted_run, m->interrupted_life)) /* that run has ended: another one can have its number */
		return 0;
	READ(handler, action, sa.sa_handler);
	READ(flags, action, sa.sa_flags);
	if (handler <= 1) /* SIG_DFL, SIG_IGN */
		return 0;
	code = m->interrupted & 0xffff;
	begin(&r, m->interrupted >> 16, 0);
	m->interrupted = 0;
	if (code == ERESTARTNOINTR || (code == ERESTARTSYS && flags & SA_RESTART))
		return 0;
	r.marks = MARK_EINTR;
	emit(&r, sizeof(r), c, SLOT_DELIVER);
	return 0;
}

#endif
