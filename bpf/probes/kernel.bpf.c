//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The base object: five raw tracepoints with BTF. They need no tracefs, no
 * kprobes and no trampolines. ../doc.go lists what each hook gives and what is lost
 * without it. */
#include "table.h"
#include "walk.h"
#include "addr.h"
#include "tasks.h"
#include "marks.h"
#include "entry.h"
#include "pathobj.h"
#include "special.h"

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

INLINE u64 on_open(struct scratch *s, u32 key, const struct desc *d)
{
	struct rec *r = &s->r;

	r->marks |= MARK_ARGS;
	if (r->op == OP_OPENAT2) {
		struct user_open_how how = {};

		if (bpf_probe_read_user(&how, sizeof(how), (void *)s->args[2]))
			r->marks |= MARK_UFAULT;
		r->flags = how.flags;
		r->mode = how.mode;
		r->resolve = how.resolve;
	} else {
		r->flags = r->op == OP_CREAT ? CREAT_FLAGS : (u32)s->args[d->flags & 7];
		r->mode = (u16)s->args[d->mode & 7];
	}
	if (r->ret >= 0 && !(r->marks & MARK_UNPROVEN)) {
		u64 file = fd_file(r->ret);

		/* the program can change what it asked for, but not what it got */
		if (file && file_flags(file) & O_ACCMODE)
			guard_file(file);
		if (just_opened(file, r->flags)) {
			r->clen1 = put_file(key, 0, file);
			return r->clen1;
		}
		/* another thread was faster: only the text says what was opened */
		r->marks |= MARK_FDRACE;
	}
	if (r->op == OP_OPEN_BY_HANDLE_AT) {
		if (r->ret >= 0 && !(r->marks & MARK_UNPROVEN))
			put_file(key, 0, 0);
		return 0;
	}
	return put_user_path(key, 0, s->args[d->path1 & 7], s->args[d->dfd1 & 7], 0);
}

INLINE u64 on_paths(struct scratch *s, u32 key, const struct desc *d)
{
	struct rec *r = &s->r;
	u64 off = 0, n;

	if (d->mode != NO) {
		r->mode = s->args[d->mode & 7];
		r->marks |= MARK_MODE;
	}
	if (d->flags != NO)
		r->flags = s->args[d->flags & 7];
	if (r->op == OP_UNLINK && r->flags & AT_REMOVEDIR)
		r->op = OP_RMDIR;
	if (r->op == OP_OPEN_TREE && d->mode != NO) /* open_tree_attr: what it sets can be nothing */
		set_attributes(r, s->args[d->mode & 7]);
	if (d->path1 == NO || by_descriptor(r, s->args[d->path1 & 7])) { /* the file itself says where it is */
		u64 file = fd_file(s->args[d->dfd1 & 7]);

		if (file)
			off = r->clen1 = put_file(key, 0, file);
	} else {
		off = put_operand(key, 0, s->args[d->path1 & 7], s->args[d->dfd1 & 7], 0);
	}
	BARRIER(off);
	if (off > BLOB_LAST)
		return 0;
	if (d->path2 == NO)
		return off;
	if (d->dfd2 != NO)
		return put_operand(key, off, s->args[d->path2 & 7], s->args[d->dfd2 & 7], 1);
	if (s->args[d->path2 & 7]) { /* text only: a link's target, a mount's source, an attribute */
		n = put_user_str(key, off, s->args[d->path2 & 7]);
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
INLINE void unmapped(bool entered, s64 ret)
{
	struct counters *c = counters_of(SLOT_EXIT);

	if (c && ret != -ENOSYS && (entered || ret >= 0))
		__sync_fetch_and_add(&c->compat_unmapped, 1);
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

/* What marks know a call by. One that passes is like one that is not in the table. */
INLINE u32 marked_as(u64 nr, bool compat32, bool passed)
{
	return call_of(passed ? NCALLS - 1 : nr, compat32);
}

/* Does this program record the end of this call? With copies, only the first one that runs. */
INLINE bool records(struct task_struct *task, struct pt_regs *regs, bool compat32, long ret)
{
	u64 nr = call_number(regs);
	const struct desc *d;
	bool elsewhere; /* another probe records this event */
	bool passed;

	if (is_x32(nr)) {
		if (bpf_current_task_under_cgroup(&scope, 0) == 1)
			unmapped(was_entered(task, x32_of(nr)), ret);
		return false;
	}
	if (nr >= NCALLS)
		return false;
	d = desc_of(nr, compat32);
	if (!d->op || (d->class == CLASS_FORK && !copied_tasks))
		return false;
	passed = passes(d, regs, compat32);
	if (passed && !copied_calls)
		return false;
	if (bpf_current_task_under_cgroup(&scope, 0) != 1)
		return false;
	if (copied_calls && !first_at_exit(task, marked_as(nr, compat32, passed)))
		return false;
	elsewhere = d->class == CLASS_FORK || (d->class == CLASS_EXEC && ret >= 0 && has_started(task, call_of(nr, compat32)));
	if (elsewhere && copied_tasks && (d->class == CLASS_EXEC || ret > 0))
		check_other_probe(task, d->class);
	return !elsewhere && !passed;
}

/* Does a call only ask whether a program could be started? */
INLINE bool only_asks(const struct desc *d, struct pt_regs *regs, bool compat32)
{
	if (d->op != OP_EXECVEAT)
		return false;
#if defined(__TARGET_ARCH_x86)
	return (compat32 ? regs->di : regs->r8) & AT_EXECVE_CHECK;
#else
	return regs->regs[4] & AT_EXECVE_CHECK;
#endif
}

INLINE int sys_exit(struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool compat32 = is_compat(task);
	u64 nr = call_number(regs);
	const struct desc *d;
	struct counters *c;
	struct scratch *s;
	bool entered;
	u64 off = 0;
	u32 key;

	if (nr >= NCALLS)
		return 0;
	d = desc_of(nr, compat32);
	entered = was_entered(task, call_of(nr, compat32));
	if (d->class == CLASS_UNMAPPED) {
		unmapped(entered, ret);
		return 0;
	}
	c = counters_of(SLOT_EXIT);
	if (!c)
		return 0;
	key = scratch_key(copied_calls ? COPY_OF(exit) : 0, SCRATCH_EXIT);
	s = bpf_map_lookup_elem(&scratch, &key);
	if (!s) {
		__sync_fetch_and_add(&c->scratch_missing, 1);
		return 0;
	}
	read_args(regs, compat32, s->args);
	if (d->class == CLASS_GUARD) {
		guard_call(d->op, s->args, ret);
		return 0;
	}
	if (d->class == CLASS_SPECIAL && !special_end(d->op, s->args, ret))
		return 0;
	begin(&s->r, d->op, ret);
	if (compat32)
		s->r.marks |= MARK_COMPAT;
	if (!entered && claims(d, ret))
		s->r.marks |= MARK_UNPROVEN;
	if (only_asks(d, regs, compat32))
		s->r.op = OP_EXEC_CHECK;

	if (d->class == CLASS_SOCK) {
		on_sock(s, key, s->args, c);
	} else {
		if (d->class == CLASS_OPEN)
			off = on_open(s, key, d);
		else if (d->class == CLASS_PATH) {
			s->call = call_of(nr, compat32);
			off = on_paths(s, key, d);
			forget_objects();
		} else if (d->class == CLASS_SPECIAL)
			off = on_special(s, key);
		else
			off = put_user_path(key, 0, s->args[d->path1 & 7], s->args[d->dfd1 & 7], 0);
		BARRIER(off);
		if (off > BLOB_LAST)
			off = BLOB_LAST;
		emit(&s->r, REC_SIZE + off, c);
	}
	if (entered && restarts(ret) && s->r.len)
		keep_interrupted(task, s->r.op, ret, c);
	return 0;
}

BODY(sys_exit_body);

SEC("tp_btf/sys_exit")
int body_sys_exit(u64 *ctx)
{
	STACK_OF_TASK(ctx, sys_exit_body);
	return sys_exit((struct pt_regs *)ctx[0], ctx[1]);
}

SEC("tp_btf/sys_exit")
int on_sys_exit(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)ctx[0];

	if (!records(task, regs, is_compat(task), ctx[1]))
		return 0;
	if (!copied_calls)
		return sys_exit(regs, ctx[1]);
	go_on(ctx, &sys_exit_body, SLOT_EXIT);
	return 0;
}

/* Runs at every call of every task of the machine. */
SEC("tp_btf/sys_enter")
int on_sys_enter(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool compat32 = is_compat(task);
	u64 nr = (u32)ctx[1];
	const struct desc *d = NULL;
	struct entry *e;
	bool passed;
	u32 call;

	if (nr >= NCALLS) {
		if (!is_x32(nr) || bpf_current_task_under_cgroup(&scope, 0) != 1)
			return 0;
		call = x32_of(nr);
	} else {
		d = desc_of(nr, compat32);
		passed = passes(d, (struct pt_regs *)ctx[0], compat32);
		if ((!d->op || d->class == CLASS_FORK || passed) && !copied_calls)
			return 0;
		if (bpf_current_task_under_cgroup(&scope, 0) != 1)
			return 0;
		call = marked_as(nr, compat32, passed);
		if (copied_calls && !first_at_entry(task, call))
			return 0;
		if (!d->op || passed)
			return 0;
	}
	e = entry_of(task, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!e)
		return 0;
	e->call = call;
	e->check = d && only_asks(d, (struct pt_regs *)ctx[0], compat32);
	return 0;
}
