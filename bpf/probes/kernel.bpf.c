//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The base object: five raw tracepoints with BTF. They need no tracefs, no
 * kprobes and no trampolines. ../doc.go lists what each hook gives and what is lost
 * without it. */
#include "context.h"
#include "table.h"
#include "walk.h"
#include "socketcalls.h"
#include "taken.h"
#include "tasks.h"
#include "marks.h"
#include "entry.h"
#include "underway.h"
#include "again.h"
#include "pathobj.h"
#include "special.h"
#include "received.h"
#include "opens.h"
#include "begin.h"

INLINE u64 on_paths(struct scratch *s, const struct desc *d)
{
	struct rec *r = &s->r;
	u64 off = 0, n;
	u32 first;

	if (d->mode != NO) {
		r->mode = (u16)s->args[d->mode & 7];
		r->marks |= MARK_MODE;
	}
	if (d->flags != NO)
		r->flags = r->op == OP_MOUNT ? s->args[d->flags & 7] : (u32)s->args[d->flags & 7]; /* of the others the kernel takes 32 bits */
	if (r->op == OP_UNLINK && r->flags & AT_REMOVEDIR)
		r->op = OP_RMDIR;
	if (r->op == OP_OPEN_TREE && d->mode != NO) /* open_tree_attr: what it sets can be nothing */
		set_attributes(r, s->args[d->mode & 7]);
	if (d->path1 == NO || by_descriptor(r, s->args[d->path1 & 7], s->args[d->dfd1 & 7])) { /* the file itself says where it is */
		off = put_descriptor(s, s->args[d->dfd1 & 7]);
	} else {
		off = put_operand(s, 0, s->args[d->path1 & 7], s->args[d->dfd1 & 7], 0);
		no_fault(r, s->args[d->path1 & 7], 0);
	}
	BARRIER(off);
	if (off > BLOB_LAST)
		return 0;
	if (d->path2 == NO)
		return off;
	if (d->dfd2 != NO) {
		u32 marks = r->marks;

		first = begin_second(r);
		off = put_operand(s, off, s->args[d->path2 & 7], s->args[d->dfd2 & 7], 1);
		no_fault(r, s->args[d->path2 & 7], marks);
		end_second(r, first);
		return off;
	}
	if (s->args[d->path2 & 7]) { /* text only: a link's target, a mount's source, an attribute */
		n = put_text(s, off, s->args[d->path2 & 7], 1);
		r->marks |= MARK_HAS_U2;
		r->ulen2 = n;
		off += n;
	}
	return off;
}

#if defined(__TARGET_ARCH_x86)
/* The x32 way of calling is not decoded. A return from a signal has number -1. */
INLINE bool is_x32(u64 nr)
{
	return nr >= X32_CALLS && nr < X32_CALLS + 1024;
}
#else
INLINE bool is_x32(u64 nr)
{
	return false;
}
#endif

/* Counts a call that is not decoded, unless it was answered and did nothing. */
INLINE void unmapped(struct counters *c, bool entered, s64 ret)
{
	if (c && ret != -ENOSYS && (entered || ret >= 0))
		__sync_fetch_and_add(&c->compat_unmapped, 1);
}

/* The same for those that are rarely made. Its entry, if one was seen, was noted as this call. */
GLOBAL u32 end_unmapped(u32 call, s64 ret)
{
	unmapped(counters_of(SLOT_EXIT), take_entry(bpf_get_current_task_btf(), call), ret);
	return 0;
}

/* Is this a call of CLASS_SPECIAL that is not looked at? */
INLINE bool passes(const struct desc *d, struct pt_regs *regs, bool compat32)
{
	u64 args[8];

	if (d->class != CLASS_SPECIAL)
		return false;
	read_args(regs, compat32, args);
	return !special(d->op, args[0], args[1]);
}

/* Which of 64 calls are of interest, in whichever way they are called? The tables are constants, and so is this: each call of
 * each task of the machine comes here, and would have to wait for memory of ours. */
INLINE u64 calls_of_interest(u32 first, bool ends)
{
	u64 set = 0;

#pragma clang loop unroll(full)
	for (u32 i = 0; i < 64; i++) {
		const struct desc *n = &calls[NATIVE][first + i], *c = &calls[COMPAT][first + i];

		if ((n->op && !(ends && is_at_once(n))) || (c->op && !(ends && is_at_once(c))))
			set |= 1ULL << i;
	}
	return set;
}

/* Is a call with this number of no interest? Most are. */
INLINE bool not_of_interest(u64 nr, bool ends)
{
	u64 set = 0;

#pragma clang loop unroll(full)
	for (u32 i = 0; i < NCALLS; i += 64)
		if (nr >> 6 == i >> 6) {
			set = calls_of_interest(i, ends);
			BARRIER(set); /* or the compiler makes a table in memory */
		}
	return !(set >> (nr & 63) & 1);
}

/* Does this program record the end of this call? With copies, only the first one that runs. Its cgroup is looked up late: what
 * is decided without it costs those less who are in none of a run's. */
INLINE bool records(struct task_struct *task, u64 *cgid, u32 *entered, u64 nr, struct pt_regs *regs, bool compat32, long ret)
{
	const struct desc *d;
	bool elsewhere; /* another probe records this event */
	u32 call = call_of(nr, compat32);

	if (is_x32(nr)) {
		if (is_in_scope(present_cgroup((u64)task), SLOT_EXIT))
			end_unmapped(x32_of(nr), ret);
		return false;
	}
	if (desc_of_call(call)->class == CLASS_EXEC)
		call = call_entered(call);
	*entered = call;
	if (is_x32_exec(call)) {
		if (is_in_scope(present_cgroup((u64)task), SLOT_EXIT))
			end_unmapped(call, ret);
		return false;
	}
	d = desc_of_call(call);
	if (changes_later(d))
		change_ended();
	if (!d->op || d->class == CLASS_CHANGE || (d->class == CLASS_FORK && !copied_tasks))
		return false;
	if (passes(d, regs, compat32) || (!copied_calls && d->class == CLASS_RECEIVE && ret < 0))
		return false;
	if (copied_calls && end_is_known(task, call))
		return false;
	*cgid = present_cgroup((u64)task);
	if (!is_in_scope(*cgid, SLOT_EXIT))
		return false;
	if (copied_calls && !first_at_exit(task, call))
		return false;
	if (d->class == CLASS_RECEIVE) {
		if (ret >= 0)
			count_received(regs, compat32);
		return false;
	}
	elsewhere = d->class == CLASS_FORK || (d->class == CLASS_EXEC && ret >= 0 && has_started(task, call));
	if (elsewhere && copied_tasks && (d->class == CLASS_EXEC || ret > 0))
		check_other_probe(task, d->class);
	return !elsewhere;
}

/* Does a call with these arguments only ask whether a program could be started? */
INLINE bool only_asks(const struct desc *d, const u64 *args)
{
	return d->op == OP_EXECVEAT && class_of(d) == CLASS_EXEC && args[4] & AT_EXECVE_CHECK;
}

/* The ends of some classes of calls. A verifier checks each once, and not once for each way that leads there.
 * s->args has the call's arguments. */
GLOBAL u64 end_open(struct scratch *s, struct counters *c, u32 nr, u32 compat32)
{
	return s && c ? on_open(s, c, desc_of(nr, compat32)) : 0;
}

GLOBAL u64 end_paths(struct scratch *s, u32 nr, u32 compat32)
{
	return s ? on_paths(s, desc_of(nr, compat32)) : 0;
}

GLOBAL u32 end_of_special(struct scratch *s, struct counters *c, u32 op, s64 ret, u32 entered)
{
	return s && special_end(c, op, s->args, ret, entered);
}

GLOBAL u64 end_special(struct scratch *s)
{
	return s ? on_special(s) : 0;
}

GLOBAL u32 end_sock(struct scratch *s, struct counters *c)
{
	if (s && c)
		on_sock(s, c);
	return 0;
}

GLOBAL u32 end_guard(struct scratch *s, struct counters *c, u32 op, s64 ret)
{
	if (s && c)
		guard_call(c, op, s->args, ret);
	return 0;
}

/* Has the record a text of memory that the process has alone, and that was not kept when the call was entered? */
INLINE bool reads_late(struct scratch *s)
{
	u32 kept = s->given.kept, marks = s->r.marks;

	return !(kept & GIVEN_SHARED) && ((marks & MARK_HAS_U1 && !(kept & GIVEN_TEXT)) || (marks & MARK_HAS_U2 && !(kept & GIVEN_TEXT << 1)));
}

INLINE int sys_exit(struct task_struct *task, u64 cgid, u32 call, struct pt_regs *regs, long ret)
{
	u32 compat32 = call >> 31;
	u64 nr = (call & ~COMPAT_CALL) - 1;
	const struct desc *d;
	struct counters *c;
	struct scratch *s;
	struct entry *entered;
	u64 off = 0;

	if (nr >= NCALLS)
		return 0;
	d = desc_of(nr, compat32);
	entered = take_entry(task, call);
	c = counters_of(SLOT_EXIT);
	if (!c)
		return 0;
	if (class_of(d) == CLASS_UNMAPPED) {
		unmapped(c, entered, ret);
		return 0;
	}
	s = scratch_at(scratch_key(copied_calls ? COPY_OF(exit) : 0, SCRATCH_EXIT));
	if (!s) {
		__sync_fetch_and_add(&c->scratch_missing, 1);
		return 0;
	}
	s->task = (u64)task;
	read_args(regs, compat32, s->args);
	FORGET(compat32, cgid);
	compat32 &= 1;
	s->given.kept = 0;
	if (entered && entered->given.kept)
		s->given = entered->given;
	if (class_of(d) == CLASS_GUARD) {
		end_guard(s, c, d->op, ret);
		return 0;
	}
	if (class_of(d) == CLASS_CONTEXT) {
		if (ret >= 0)
			tell_context(s, c);
		if (ret >= 0 && d->flags != NO)
			note_apart(task);
		return 0;
	}
	if (class_of(d) == CLASS_SPECIAL && !end_of_special(s, c, d->op, ret, !!entered))
		return 0;
	begin_of(&s->r, d->op, ret, task->tgid, task->pid, cgid);
	if (class_of(d) != CLASS_OPEN) /* one that is told of what it opened has the time of that */
		s->r.ktime = bpf_ktime_get_ns();
	s->r.marks = compat32 * MARK_COMPAT;
	if (!entered && claims(d, ret))
		s->r.marks |= MARK_UNPROVEN;
	if (only_asks(d, s->args))
		s->r.op = OP_EXEC_CHECK;

	if (class_of(d) == CLASS_SOCK) {
		end_sock(s, c);
	} else {
		if (entered && is_proved(d))
			s->r.aux2 = entered->again;
		if (class_of(d) == CLASS_OPEN)
			off = end_open(s, c, nr, compat32);
		else if (class_of(d) == CLASS_PATH) {
			s->call = call;
			off = end_paths(s, nr, compat32);
			forget_objects();
		} else if (class_of(d) == CLASS_SPECIAL)
			off = end_special(s);
		else {
			off = put_user_path(s, 0, s->args[d->path1 & 7], s->args[d->dfd1 & 7], 0);
			if (s->given.kept & GIVEN_MEMORY && !(s->given.kept & GIVEN_TEXT) && s->given.memory != POINTER(task_struct, (u64)task, mm))
				s->r.marks |= MARK_CHANGED;
		}
		if (reads_late(s) && exposed_late()) /* it is asked after that: what was read can be what others wrote */
			s->r.marks |= MARK_CHANGED;
		if (!s->r.ktime)
			s->r.ktime = bpf_ktime_get_ns();
		FORGET(off, cgid);
		if (off > BLOB_LAST)
			off = BLOB_LAST;
		emit_as(&s->r, REC_SIZE + off, c, SLOT_EXIT, !copied_calls);
	}
	if (entered && restarts(ret) && s->r.len) {
		keep_interrupted(task, s->r.op, ret, c);
		if (is_proved(d))
			keep_left(s, entered, call, regs);
	}
	return 0;
}

BODY(sys_exit_body);

#ifndef USUAL
SEC("tp_btf/sys_exit")
int body_sys_exit(u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	struct task_struct *task;
	u32 call;

	STACK_OF_TASK(ctx, sys_exit_body);
	task = bpf_get_current_task_btf();
	call = call_entered(call_of(call_number(regs), is_compat(task)));
	return sys_exit(task, present_cgroup((u64)task), call, regs, ctx[1]);
}
#endif

INLINE int at_exit(u64 *ctx, bool copied)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	u64 nr = call_number(regs), cgid = 0;
	struct task_struct *task;
	u32 call = 0;

	if (nr >= NCALLS ? !is_x32(nr) : not_of_interest(nr, true))
		return 0;
	task = bpf_get_current_task_btf();
	if (!records(task, &cgid, &call, nr, regs, is_compat(task), ctx[1]))
		return 0;
	if (!copied)
		return sys_exit(task, cgid, call, regs, ctx[1]);
	go_on(ctx, &sys_exit_body, SLOT_EXIT);
	return 0;
}

PROBE("sys_exit", sys_exit, at_exit)

/* Is the entry of this call one that nothing is kept of? Marks are kept of all whose end could be missed. */
INLINE bool enters_unmarked(struct task_struct *task, const struct desc *d, struct pt_regs *regs, bool compat32)
{
	if (!d->op || passes(d, regs, compat32) || (d->class == CLASS_CHANGE && !changed_by((u64)task, d->op)))
		return true;
	return !copied_calls && (d->class == CLASS_FORK || d->class == CLASS_RECEIVE);
}

INLINE int passed(void)
{
	if (copied_calls)
		pass_entry(bpf_get_current_task_btf());
	return 0;
}

/* Keeps what a call is given that is entered. */
INLINE int keep_entered(struct task_struct *task, struct entry *e, const struct desc *d, struct pt_regs *regs, u32 nr, u32 compat32, u32 call)
{
	struct scratch *s;
	u32 shared;
	u64 ip, sp;

	read_place(regs, &ip, &sp);
	FORGET(compat32, ip);
	compat32 &= 1;
	shared = shared_now((u64)task, sp);
	if (!e->left && keeps_nothing(&e->alone, regs, compat32, d, shared))
		return 0;
	s = scratch_at(scratch_key(copied_calls ? COPY_OF(enter) : 0, SCRATCH_ENTER));
	if (!s)
		return 0;
	s->task = (u64)task;
	read_args(regs, compat32, s->args);
	s->given.kept = 0;
	if (class_of(d) == CLASS_EXEC) {
		e->check = only_asks(d, s->args);
		e->alone.end = 0;
	}
	if (e->left && is_proved(d)) {
		e->again = starts_over(s, call, ip, sp);
		e->left = !e->again;
	}
	if (!(shared & SHARES_MEMORY))
		s->alone = e->alone;
	keep_call(s, nr, compat32, shared);
	if (!(shared & SHARES_MEMORY))
		e->alone = s->alone;
	if (s->given.kept)
		e->given = s->given;
	return 0;
}

BODY(sys_enter_body);

#ifndef USUAL
SEC("tp_btf/sys_enter")
int body_sys_enter(u64 *ctx)
{
	struct task_struct *task;
	u32 nr = ctx[1], compat32;
	struct entry *e;

	STACK_OF_TASK(ctx, sys_enter_body);
	task = bpf_get_current_task_btf();
	compat32 = is_compat(task);
	e = entry_of(task, 0);
	return e ? keep_entered(task, e, desc_of(nr, compat32), (struct pt_regs *)ctx[0], nr, compat32, call_of(nr, compat32)) : 0;
}
#endif

/* Runs at every call of every task of the machine. */
INLINE int at_enter(u64 *ctx, bool copied)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	struct task_struct *task;
	u64 nr = (u32)ctx[1];
	const struct desc *d = NULL;
	struct entry *e;
	u32 compat32, call;

	if (nr >= NCALLS && !is_x32(nr))
		return 0;
	if (nr < NCALLS && not_of_interest(nr, false))
		return passed();
	task = bpf_get_current_task_btf();
	compat32 = is_compat(task);
	if (nr >= NCALLS) {
		if (!is_in_scope(present_cgroup((u64)task), SLOT_ENTER))
			return 0;
		call = x32_of(nr);
	} else {
		d = desc_of(nr, compat32);
		if (enters_unmarked(task, d, regs, compat32))
			return passed();
		call = call_of(nr, compat32);
		if (copied_calls && entry_is_known(task, call))
			return 0;
		if (!is_in_scope(present_cgroup((u64)task), SLOT_ENTER))
			return 0;
		if (copied_calls && !first_at_entry(task, call))
			return 0;
		if (class_of(d) == CLASS_RECEIVE || class_of(d) == CLASS_FORK)
			return 0;
		if (class_of(d) == CLASS_CHANGE) {
			if (is_at_once(d))
				close_entered(first_argument(regs, compat32));
			else
				change_entered(d->op, compat32);
			return 0;
		}
		if (class_of(d) == CLASS_CONTEXT && d->mode != NO)
			change_entered(CHANGES_START, 0);
	}
	e = entry_of(task, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!e)
		return 0;
	e->call = call;
	e->check = 0;
	e->given.kept = 0;
	e->again = 0;
	if (!d)
		return 0;
	if (class_of(d) == CLASS_GUARD || class_of(d) == CLASS_SPECIAL)
		note_begin(nr, compat32, first_argument(regs, compat32), second_argument(regs, compat32));
	if (!is_kept(d))
		return 0;
	if (!copied)
		return keep_entered(task, e, d, regs, nr, compat32, call);
	go_on(ctx, &sys_enter_body, SLOT_ENTER);
	return 0;
}

PROBE("sys_enter", sys_enter, at_enter)
