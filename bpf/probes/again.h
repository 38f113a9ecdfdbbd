/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Does a call start over that a signal interrupted? Its end says whether the program gets EINTR, but a handler can also jump away:
 * then the call has ended without a word, and the thread's next one is another. A call that starts over is made at the same place, with the
 * same stack, arguments and text. Only an open or an exec has to be proved so: what others are about is in both of their records. */
#ifndef RUNNER_AGAIN_H
#define RUNNER_AGAIN_H

#include "entry.h"
#include "taken.h"

/* A call that was interrupted. */
struct left {
	u32 call;
	u32 len;
	u64 ip, sp;
	u64 args[6];
	u8 text[UPATH_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, struct left);
} left SEC(".maps");

INLINE struct left *left_of_task(u64 flags)
{
	return bpf_task_storage_get(&left, bpf_get_current_task_btf(), 0, flags);
}

INLINE void read_place(struct pt_regs *regs, u64 *ip, u64 *sp)
{
#if defined(__TARGET_ARCH_x86)
	*ip = regs->ip;
#else
	*ip = regs->pc;
#endif
	*sp = regs->sp;
}

INLINE bool is_proved(const struct desc *d)
{
	u8 class = class_of(d);

	return class == CLASS_OPEN || class == CLASS_EXEC;
}

/* The text of the call that ends is at the beginning of the scratch record. */
INLINE void keep_left(struct scratch *s, struct entry *e, u32 call, struct pt_regs *regs)
{
	struct left *l = left_of_task(BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 len = s->r.ulen1;

	e->left = 0;
	if (!l || s->r.marks & MARK_UFAULT)
		return;
	BARRIER(len);
	if (len > sizeof(l->text) || bpf_probe_read_kernel(l->text, len, s->blob))
		return;
	l->call = call;
	l->len = len;
	read_place(regs, &l->ip, &l->sp);
	for (u32 i = 0; i < 6; i++)
		l->args[i] = s->args[i];
	e->left = 1;
}

/* Is the text in the scratch record the one of the call that was left? */
GLOBAL u32 same_left(struct scratch *s, u32 at)
{
	struct left *l = left_of_task(0);
	u64 from = at;
	u8 *now, *then;

	BARRIER(from);
	if (!s || !l || from > UPATH_MAX - TEXT_PIECE)
		return 0;
	now = s->blob + from;
	then = l->text + from;
	BARRIER(now); /* the bound of the offset is lost if it is added again for each word */
	BARRIER(then);
	return same_words(now, then, l->len - at);
}

struct left_comparison {
	struct scratch *s;
	u32 len, differs;
};

static long compare_left(u32 i, struct left_comparison *c)
{
	if (i * TEXT_PIECE >= c->len)
		return 1;
	c->differs = !same_left(c->s, i * TEXT_PIECE);
	return c->differs;
}

/* Is the call that is entered the one that was left? s->args has its arguments. The text that follows another one in a record is not looked at. */
GLOBAL u32 starts_over(struct scratch *s, u32 call, u64 ip, u64 sp)
{
	struct left *l = left_of_task(0);
	const struct desc *d = desc_of_call(call);
	struct left_comparison c = { .s = s };
	u64 differs = 0;

	if (!s || !l || l->call != call || l->ip != ip || l->sp != sp || d->path1 == NO)
		return 0;
	for (u32 i = 0; i < 6; i++)
		differs |= l->args[i] ^ s->args[i];
	c.len = l->len;
	if (differs || put_user_str(s, 0, s->args[d->path1 & 7]) != c.len)
		return 0;
	LOOP(UPATH_MAX / TEXT_PIECE, compare_left, &c);
	return !c.differs;
}

#endif
