/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls that change what other threads' calls are given, from their entry to their end: they can wait in between, and do it at any time.
 * A close is done at once, and there are very many: of those only the entry is noted. */
#ifndef RUNNER_UNDERWAY_H
#define RUNNER_UNDERWAY_H

#include "entry.h"

/* The change of a task is done. */
INLINE void end_change(struct entry *e)
{
	struct change *c;
	u64 now;

	if (!e || !e->change)
		return;
	c = change_at(e->change - 1);
	e->change = 0;
	if (!c)
		return;
	now = bpf_ktime_get_ns();
	set_time(&c->at, now);
	set_time(&c->taken, now);
	__sync_fetch_and_add(&c->busy, -1);
}

/* One begins, which note_change has noted in this place. One before it has ended, even if nothing saw that. */
INLINE void begin_change(struct task_struct *task, u32 place)
{
	struct entry *e = entry_of(task, place ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	struct change *c;

	end_change(e);
	if (!place)
		return;
	if (!e) { /* no memory: nobody will know when it ends */
		struct counters *n = counters_of(SLOT_ENTER);

		if (n)
			__sync_fetch_and_add(&n->scratch_missing, 1);
		return;
	}
	c = change_at(place - 1);
	if (!c)
		return;
	__sync_fetch_and_add(&c->busy, 1);
	e->change = place;
}

/* The present task, which shares its table of descriptors, begins to close one. There are as many closes as opens: this is given its
 * argument, where change_entered reads all of them. */
GLOBAL u32 close_entered(s32 fd)
{
	u64 task = bpf_get_current_task();

	note_descriptor(task, descriptors_of(task), fd);
	return 0;
}

/* The present task's call begins, which changes that. */
GLOBAL u32 change_entered(u32 what, u32 compat32)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 args[8] = {};
	u32 place;

	BARRIER(compat32); /* or callers leave it out where no 32-bit programs are: a verifier wants what the function takes */
	read_args((struct pt_regs *)bpf_task_pt_regs(task), compat32 & 1, args);
	place = note_change((u64)task, what, args[1]);
	begin_change(task, place);
	if (what == CHANGES_ALL && args[2] & CLOSE_RANGE_UNSHARE)
		note_apart(task);
	return 0;
}

/* The present task's call ends, or the task does. */
GLOBAL u32 change_ended(void)
{
	end_change(entry_of(bpf_get_current_task_btf(), 0));
	return 0;
}

#endif
