/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What is noted and kept when a call begins. */
#ifndef RUNNER_BEGIN_H
#define RUNNER_BEGIN_H

#include "changes.h"
#include "exposed.h"
#include "keep.h"

/* A call begins that can change what others are given. */
GLOBAL u32 note_begin(u32 nr, u32 compat32, u64 first, u64 second)
{
	const struct desc *d = desc_of(nr, compat32);

	if (d->class == CLASS_GUARD && exposes(d->op))
		expose(run_at(SLOT_ENTER), d->op == GUARD_PTRACE && (first == PTRACE_POKETEXT || first == PTRACE_POKEDATA));
	if (d->class == CLASS_GUARD && d->op == GUARD_RING && !has_rings(bpf_get_current_task())) /* workers will have the descriptors, too */
		note_sharing(bpf_get_current_task());
	if (d->class == CLASS_SPECIAL && d->op == OP_TIOCGPTPEER && (gives_away(second) || closes_any(second)))
		note_giving(1);
	return 0;
}

/* Is something kept of what a call is given? */
INLINE bool is_kept(const struct desc *d)
{
	switch (class_of(d)) {
	case CLASS_OPEN:
	case CLASS_EXEC:
	case CLASS_PATH:
	case CLASS_SOCK:
	case CLASS_SPECIAL:
		return true;
	}
	return false;
}

/* Is a call given nothing in memory but one name, or not even that? */
INLINE bool has_one_name(const struct desc *d)
{
	return d->path2 == NO && d->op != OP_OPENAT2;
}

/* Is what a call is given known to be in memory of its process alone? */
INLINE bool has_alone(struct alone *alone, const u64 *args, const struct desc *d)
{
	return has_one_name(d) && (d->path1 == NO || is_alone(alone, args[d->path1 & 7]));
}

/* What the present task shares with others, and what they can reach of it. */
INLINE u32 shared_now(u64 task, u64 unknown)
{
	u32 shared = shares(task);

	if (is_exposed(run_at(SLOT_ENTER)))
		shared |= SHARES_MEMORY | SHARES_WITH_THREADS;
	FORGET(shared, unknown);
	return shared;
}

/* Is there nothing to keep? So it is for most calls of a program without threads. */
INLINE bool keeps_nothing(struct alone *alone, struct pt_regs *regs, bool compat32, const struct desc *d, u32 shared)
{
	u8 class = class_of(d), name = d->path1;

	if (shared || (class != CLASS_OPEN && class != CLASS_PATH) || always_kept(d->op) || !has_one_name(d))
		return false;
	if (name == NO)
		return true;
	return name < 2 /* of no call is it a later argument */ && is_alone(alone, name ? second_argument(regs, compat32) : first_argument(regs, compat32));
}

/* Keeps what the call is given that is entered. s->args has its arguments, and s->alone what is known of its memory. */
GLOBAL u32 keep_call(struct scratch *s, u32 nr, u32 compat32, u32 shared)
{
	const struct desc *d;

	if (!s)
		return 0;
	d = desc_of(nr, compat32);
	if (d->class == CLASS_SOCK)
		return keep_socket(s, d->op, shared);
	if (d->class == CLASS_SPECIAL)
		return keep_special(s, d->op, shared);
	if (!(shared & SHARES_MEMORY) && !has_alone(&s->alone, s->args, d) && others_reach_call(s, nr, compat32))
		shared |= SHARES_MEMORY;
	if (!shared && !always_kept(d->op))
		return 0;
	return keep_given(s, nr, compat32, shared);
}

#endif
