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
#include "interrupt.h"
#include "pathobj.h"

struct args {
	u64 v[8];
};

INLINE void read_args(struct pt_regs *regs, bool compat32, struct args *a)
{
#if defined(__TARGET_ARCH_x86)
	if (compat32) {
		a->v[0] = (u32)regs->bx;
		a->v[1] = (u32)regs->cx;
		a->v[2] = (u32)regs->dx;
		a->v[3] = (u32)regs->si;
		a->v[4] = (u32)regs->di;
		a->v[5] = (u32)regs->bp;
	} else {
		a->v[0] = regs->di;
		a->v[1] = regs->si;
		a->v[2] = regs->dx;
		a->v[3] = regs->r10;
		a->v[4] = regs->r8;
		a->v[5] = regs->r9;
	}
#else
	a->v[0] = regs->orig_x0; /* x0 holds the return value by now */
	a->v[1] = regs->regs[1];
	a->v[2] = regs->regs[2];
	a->v[3] = regs->regs[3];
	a->v[4] = regs->regs[4];
	a->v[5] = regs->regs[5];
	if (compat32)
		for (int i = 0; i < 6; i++)
			a->v[i] = (u32)a->v[i];
#endif
	a->v[6] = (u64)AT_FDCWD;
	a->v[7] = 0;
}

INLINE u64 on_open(struct scratch *s, u32 key, const struct desc *d, struct args *a)
{
	struct rec *r = &s->r;

	r->marks |= MARK_ARGS;
	if (r->op == OP_OPENAT2) {
		struct user_open_how how = {};

		if (bpf_probe_read_user(&how, sizeof(how), (void *)a->v[2]))
			r->marks |= MARK_UFAULT;
		r->flags = how.flags;
		r->mode = how.mode;
		r->resolve = how.resolve;
	} else {
		r->flags = r->op == OP_CREAT ? CREAT_FLAGS : (u32)a->v[d->flags & 7];
		r->mode = (u16)a->v[d->mode & 7];
	}
	if (r->ret >= 0) {
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
		if (r->ret >= 0)
			put_file(key, 0, 0);
		return 0;
	}
	return put_user_path(key, 0, a->v[d->path1 & 7], a->v[d->dfd1 & 7], 0);
}

INLINE u64 on_paths(struct scratch *s, u32 key, const struct desc *d, struct args *a)
{
	struct rec *r = &s->r;
	u64 off = 0, n;

	if (d->mode != NO) {
		r->mode = a->v[d->mode & 7];
		r->marks |= MARK_MODE;
	}
	if (d->flags != NO)
		r->flags = a->v[d->flags & 7];
	if (r->op == OP_UNLINK && r->flags & AT_REMOVEDIR)
		r->op = OP_RMDIR;
	if (d->path1 == NO) { /* by descriptor: the file itself says where it is */
		u64 file = fd_file(a->v[d->dfd1 & 7]);

		if (!file)
			return 0;
		r->clen1 = put_file(key, 0, file);
		return r->clen1;
	}
	off = put_operand(key, 0, a->v[d->path1 & 7], a->v[d->dfd1 & 7], 0);
	if (d->path2 == NO)
		return off;
	if (d->dfd2 != NO)
		return put_operand(key, off, a->v[d->path2 & 7], a->v[d->dfd2 & 7], 1);
	if (a->v[d->path2 & 7]) { /* text only: a link's target, a mount's source */
		n = put_user_str(key, off, a->v[d->path2 & 7]);
		r->marks |= MARK_HAS_U2;
		r->ulen2 = n;
		off += n;
	}
	return off;
}

/* Does this program record the end of this call? With copies, only the first one that runs. */
INLINE bool records(struct task_struct *task, u64 nr, bool compat32, long ret)
{
	const struct desc *d;
	bool elsewhere; /* another probe records this event */

#if defined(__TARGET_ARCH_x86)
	/* The x32 way of calling is not decoded. A return from a signal has number -1. */
	if (nr >= X32_CALLS && nr < X32_CALLS + 1024) {
		if (ret == -ENOSYS || !bpf_current_task_under_cgroup(&scope, 0))
			return false;
		struct counters *c = counters_of(SLOT_EXIT);

		if (c)
			__sync_fetch_and_add(&c->compat_unmapped, 1);
		return false;
	}
#endif
	if (nr >= NCALLS)
		return false;
	d = desc_of(nr, compat32);
	if (!d->op)
		return false;
	elsewhere = d->class == CLASS_FORK || (d->class == CLASS_EXEC && ret >= 0);
	if (elsewhere && !copied_tasks)
		return false;
	if (bpf_current_task_under_cgroup(&scope, 0) != 1)
		return false;
	if (copied_calls && !first_at_exit(task, call_of(nr, compat32)))
		return false;
	if (elsewhere && (d->class == CLASS_EXEC || ret > 0))
		check_other_probe(task, d->class);
	return !elsewhere;
}

INLINE int sys_exit(struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool compat32 = is_compat(task);
	u64 nr = call_number(regs);
	const struct desc *d;
	struct counters *c;
	struct scratch *s;
	struct args a;
	u64 off = 0;
	u32 key;

	if (nr >= NCALLS)
		return 0;
	d = desc_of(nr, compat32);
	if (d->class == CLASS_GUARD) {
		read_args(regs, compat32, &a);
		guard_call(d->op, a.v, ret);
		return 0;
	}
	c = counters_of(SLOT_EXIT);
	if (!c)
		return 0;
	if (d->class == CLASS_UNMAPPED) {
		__sync_fetch_and_add(&c->compat_unmapped, 1);
		return 0;
	}
	key = scratch_key(copied_calls ? COPY_OF(exit) : 0, SCRATCH_EXIT);
	s = bpf_map_lookup_elem(&scratch, &key);
	if (!s) {
		__sync_fetch_and_add(&c->scratch_missing, 1);
		return 0;
	}
	read_args(regs, compat32, &a);
	begin(&s->r, d->op, ret);
	if (compat32)
		s->r.marks |= MARK_COMPAT;

	if (d->class == CLASS_SOCK) {
		on_sock(s, key, &a.v[0], c);
	} else {
		if (d->class == CLASS_OPEN)
			off = on_open(s, key, d, &a);
		else if (d->class == CLASS_PATH) {
			s->call = call_of(nr, compat32);
			off = on_paths(s, key, d, &a);
			forget_objects();
		} else
			off = put_user_path(key, 0, a.v[d->path1 & 7], a.v[d->dfd1 & 7], 0);
		BARRIER(off);
		if (off > BLOB_LAST)
			off = BLOB_LAST;
		emit(&s->r, REC_SIZE + off, c);
	}
	if (restarts(ret) && s->r.len)
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

	if (!records(task, call_number(regs), is_compat(task), ctx[1]))
		return 0;
	if (!copied_calls)
		return sys_exit(regs, ctx[1]);
	go_on(ctx, &sys_exit_body, SLOT_EXIT);
	return 0;
}

/* Only with copies: marks the coming exit. A mark that is still set at the task's next
 * call belongs to a call whose end no copy of on_sys_exit saw. */
SEC("tp_btf/sys_enter")
int on_sys_enter(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mark_state *m;
	u64 nr = ctx[1];
	u32 call;

	if (nr >= NCALLS || bpf_current_task_under_cgroup(&scope, 0) != 1)
		return 0;
	m = mark_of(task);
	if (!m)
		return 0;
	call = call_of(nr, is_compat(task));
	if (m->pending == call && !(m->entered >> copy)) {
		m->entered |= 1 << copy; /* an earlier copy was here */
		return 0;
	}
	missed_pending(m);
	m->pending = call;
	m->calls++;
	m->entered = 1 << copy;
	m->seen = 1;
	return 0;
}
