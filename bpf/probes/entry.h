/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a thread's present call was when it was entered. The kernel reports an entry when seccomp filters,
 * their supervisors and tracers have let the call through, with the number that they left it. A call that was
 * answered instead of run has an end only: what its return value says was done was not. */
#ifndef RUNNER_ENTRY_H
#define RUNNER_ENTRY_H

#include "interrupt.h"
#include "keep.h"

struct entry {
	u32 call;   /* the call that was entered, whose end is still to come; call_of and x32_of give it */
	u32 execed; /* the call that has started a program, likewise */
	u32 check;  /* that call only asks whether a program could be started */
	u16 left;   /* an earlier call was left, which can start over (again.h) */
	u16 again;  /* the entered call is that one */
	u32 change; /* what it changes of others, one more than its place in changes (underway.h) */
	u32 pad;
	struct alone alone;
	struct given given;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, struct entry);
} entries SEC(".maps");

INLINE struct entry *entry_of(struct task_struct *task, u64 flags)
{
	return bpf_task_storage_get(&entries, task, 0, flags);
}

/* A call of the x32 way of calling, as an entry keeps it. No other call has this bit. */
INLINE u32 x32_of(u64 nr)
{
	return (u32)nr + 1;
}

#if defined(__TARGET_ARCH_x86)
/* arch/x86/entry/syscalls/syscall_64.tbl: it has numbers of its own for these */
enum { X32_EXECVE = X32_CALLS + 520, X32_EXECVEAT = X32_CALLS + 545 };

INLINE bool is_x32_exec(u32 call)
{
	return call == x32_of(X32_EXECVE) || call == x32_of(X32_EXECVEAT);
}
#else
INLINE bool is_x32_exec(u32 call)
{
	return false;
}
#endif

/* The entry of the call that ends now, NULL if none was seen. Each is asked for once. Where programs can be skipped,
 * an older entry can be there; the marks know which one is of this call. */
INLINE struct entry *take_entry(struct task_struct *task, u32 call)
{
	struct entry *e = entry_of(task, 0);
	struct mark_state *m;
	bool same;

	if (!e)
		return NULL;
	same = e->call == call;
	e->call = 0;
	if (!same || !copied_calls)
		return same ? e : NULL;
	m = mark_of(task);
	return m && m->ending ? e : NULL;
}

/* The call that ends, as it was entered. An exec that fails late has the number and the way of calling of the new program. */
GLOBAL u32 call_entered(u32 call)
{
	struct entry *e;

	if (desc_of_call(call)->class != CLASS_EXEC)
		return call;
	e = entry_of(bpf_get_current_task_btf(), 0);
	return e && e->call && (is_x32_exec(e->call) || desc_of_call(e->call)->class == CLASS_EXEC) ? e->call : call;
}

/* Has this exec, which says so, started a program? If the call ran it has, even where the kernel skipped the
 * program that sees it. */
INLINE bool has_started(struct task_struct *task, u32 call)
{
	struct entry *e = entry_of(task, 0);
	bool started;

	if (!e)
		return false;
	started = e->execed == call || (e->call == call && !e->check);
	e->execed = 0;
	return started;
}

/* A program was started. The number is looked at again: it belongs to the new program's way of calling now, and
 * so does the end of the call. */
INLINE void note_start(struct task_struct *task)
{
	struct entry *e = entry_of(task, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!e)
		return;
	e->again &= !!e->call;
	if (!e->call) /* what is kept is of another call */
		e->given.kept = 0;
	e->alone.end = 0;
	e->call = 0;
	e->execed = call_of(call_number(bpf_task_pt_regs(task)), is_compat(task));
}

/* Is the exec that has started a program one that was left and started over? */
INLINE u64 was_left(void)
{
	struct entry *e = entry_of(bpf_get_current_task_btf(), 0);

	return e ? e->again : 0;
}

/* Does an answer say that something was done, or that it will be? A call that did not run and says that it failed did
 * nothing, and its program was told so: that needs no proof. */
INLINE bool claims(const struct desc *d, s64 ret)
{
	return ret >= 0 || restarts(ret) || (d->op == OP_CONNECT && ret == -EINPROGRESS);
}

#endif
