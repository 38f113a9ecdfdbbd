/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Several copies of a probe share these marks. While a task is preempted inside a program,
 * the kernel skips that program for all other tasks of the CPU. One of its copies then
 * runs: the first copy that runs for an event does the work, and the others find its mark.
 * The marks also show which events no copy saw. Each of these is counted once.
 *
 * Of a large program, the copies only look at the marks. The work is done by a program that
 * all of them share, its body: the verifier needs time for it once, and not once per copy. A
 * copy goes on there by a tail call, for which the kernel does not ask whether the body is
 * already running. The copy's number is in the mark, because all else that the body could find
 * it in belongs to the CPU and not to the task. */
#ifndef RUNNER_MARKS_H
#define RUNNER_MARKS_H

#include "call.h"
#include "scope.h"
#include "table.h"

/* Copies run in the order of their numbers. So if this or a later copy has already run,
 * that was for another event. */
struct mark_state {
	u32 pending;	/* the call that was entered and not yet recorded, as call_of gives it */
	u32 entered;	/* which copies of on_sys_enter have run for it, by bit */
	u32 exited;	/* which copies of on_sys_exit have run since the last recorded call */
	u32 seen;	/* 0: the task's present call was entered before the probes were attached */
	u64 execs;	/* the kernel's number of the last exec that was recorded */
	u64 child_born; /* the last child whose creation was recorded: its start and its number */
	u32 child;
	u32 forked; /* a creation was recorded, and its call has not ended yet */
	u32 ended;
	u32 last; /* the call that was recorded last, as call_of gives it */
	u64 ring; /* the last io_uring submission: its ring and its place there */
	u32 ring_head;
	u32 interrupted; /* the operation of a call that a signal interrupted, and its restart code */
	u64 calls;  /* the calls that a copy of on_sys_enter has seen; the last of them is pending */
	u64 ending; /* which of them the record is about whose end is seen now; 0 is none of them */
	u64 first;  /* 1: that end is the first thing that the probes saw of the task */
	u32 enter_copy; /* the copies that go on in the bodies of these probes */
	u32 exit_copy;
	u32 exec_copy;
	u32 fork_copy;
	u32 submit_copy;
	u32 interrupted_run; /* whose call that is */
	u32 interrupted_life; /* as life_of gives it */
	u32 run; /* whose the rest is, likewise */
	u32 life;
	u32 apart; /* how often it took directories or descriptors of its own: the workers of its rings can have others than itself */
	u32 signalled; /* which copies of on_signal have run for the last signal that it sent */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, struct mark_state);
} marks SEC(".maps");

#define COMPAT_CALL (1U << 31)

/* A call as a mark keeps it; 0 is none. */
INLINE u32 call_of(u64 nr, bool compat32)
{
	return ((u32)nr + 1) | (u32)compat32 << 31;
}

INLINE const struct desc *desc_of(u64 nr, u32 compat32)
{
	u64 row = (nr & (NCALLS - 1)) | (u64)(compat32 & 1) * NCALLS;

	BARRIER(row); /* the verifier of Linux 6.1 does not know how large it is, and a compiler does */
	row &= 2 * NCALLS - 1;
	return &calls[NATIVE][row];
}

/* Its class, read again: what a verifier knows of it by then is more than what follows needs. */
INLINE u8 class_of(const struct desc *d)
{
	return *(volatile const u8 *)&d->class;
}

INLINE const struct desc *desc_of_call(u32 call)
{
	return desc_of((call & ~COMPAT_CALL) - 1, call >> 31);
}

/* The body of a probe, for its copies. The programs of such an array must all be for one
 * tracepoint, so each has its own. */
#ifdef USUAL
#define BODY(name) extern u32 name
#else
#define BODY(name)                                       \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);   \
		__uint(max_entries, 1);                  \
		__type(key, u32);                        \
		__type(value, u32);                      \
	} name SEC(".maps")
#endif

/* A probe that has a body, by what it does (context, whether it has copies). With copies it goes on in the body, and alone it
 * does all itself: two programs, so that a verifier is given nothing that is not for it. The loader takes one. */
#ifdef USUAL
#define PROBE(tracepoint, name, work) \
	SEC("tp_btf/" tracepoint)     \
	int on_##name(u64 *ctx)       \
	{                             \
		return work(ctx, false); \
	}
#else
#define PROBE(tracepoint, name, work) \
	SEC("tp_btf/" tracepoint)     \
	int on_##name(u64 *ctx)       \
	{                             \
		return work(ctx, true); \
	}                             \
	SEC("tp_btf/" tracepoint)     \
	int alone_##name(u64 *ctx)    \
	{                             \
		return work(ctx, false); \
	}
#endif

INLINE void missed_one(u32 run, u32 slot)
{
	struct counters *c = counters_in(run, slot);

	if (c)
		__sync_fetch_and_add(&c->missed, 1);
}

INLINE const struct desc *pending_desc(struct mark_state *m)
{
	return desc_of_call(m->pending);
}

/* No copy saw the end of the present task's call that is still pending. Of a task's creation, the other
 * probe's mark says whether it was recorded. A function of its own, because it is rare: a verifier would follow it in each way that
 * leads to it. */
GLOBAL u32 note_missed(void)
{
	struct mark_state *m = bpf_task_storage_get(&marks, bpf_get_current_task_btf(), 0, 0);
	const struct desc *d;

	if (!m || !m->pending)
		return 0;
	d = pending_desc(m);
	m->pending = 0;
	if (!d->op || d->class == CLASS_CHANGE)
		return 0;
	if (d->class == CLASS_FORK && m->forked)
		m->forked = 0;
	else
		missed_one(m->run, d->class == CLASS_EXEC ? SLOT_EXEC : d->class == CLASS_FORK ? SLOT_FORK : SLOT_EXIT);
	return 0;
}

INLINE void missed_pending(struct mark_state *m)
{
	if (m->pending)
		note_missed();
}

INLINE struct mark_state *mark_of(struct task_struct *task)
{
	return bpf_task_storage_get(&marks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#ifdef SHARED
GLOBAL u32 present_is(u32 run, u32 life)
{
	return run && run == run_of_id(present_cgroup(bpf_get_current_task())) && life == life_of(run);
}
#endif

/* Is the present task's mark of its run? Where runs share the probes, tasks can come to another run, and stay when theirs has ended. */
INLINE bool is_of_run(struct mark_state *m)
{
#ifdef SHARED
	return present_is(m->run, m->life);
#else
	return true;
#endif
}

INLINE u32 times_apart(void)
{
	struct mark_state *m = bpf_task_storage_get(&marks, bpf_get_current_task_btf(), 0, 0);

	return m ? m->apart : 0;
}

/* The same for the program of a slot that is at an event of a run. What the mark has of another run says nothing about this one. */
INLINE struct mark_state *mark_in_run(struct task_struct *task, u32 slot)
{
	struct mark_state *m = mark_of(task);
#ifdef SHARED
	u32 run = run_at(slot), life = life_of(run);

	if (m && (m->run != run || m->life != life)) {
		m->run = run;
		m->life = life;
		m->pending = m->last = m->seen = m->forked = 0;
	}
#endif
	return m;
}

/* Without memory for a mark, the first copy does the work. No copy can know whether another
 * ran or will: each counts. */
INLINE bool first_unmarked(u32 slot)
{
	struct counters *c = counters_of(slot);

	if (c)
		__sync_fetch_and_add(&c->scratch_missing, 1);
	return !copy;
}

/* A task takes directories or descriptors of its own. Workers that it has keep those that they shared. */
INLINE void note_apart(struct task_struct *task)
{
	struct mark_state *m;

	if (!EXISTS(struct task_struct___rings, io_uring) || !POINTER(task_struct___rings, (u64)task, io_uring))
		return;
	m = mark_of(task);
	if (m)
		m->apart++;
	else
		first_unmarked(SLOT_EXIT); /* counts it */
}

/* Goes on in the body. That cannot fail; if it does, the event is lost. */
INLINE void go_on(void *ctx, void *body, u32 slot)
{
	bpf_tail_call(ctx, body, 0);
	missed_one(run_at(slot), slot);
}

/* In a body: it has its stack from the task. Since Linux 6.13 a program may have one stack per
 * CPU, because the kernel lets it run there once at a time; a body runs more often. Programs with a
 * tail call have none. This one is never reached: every machine has a CPU. */
#define STACK_OF_TASK(ctx, body)                      \
	do {                                          \
		if (!ncpus)                           \
			bpf_tail_call(ctx, &body, 0); \
	} while (0)

/* In a body: which copy goes on there. Without memory for a mark, it is the first. */
#define COPY_OF(probe)                                                       \
	({                                                                   \
		struct mark_state *_m = mark_of(bpf_get_current_task_btf()); \
		_m ? _m->probe##_copy : 0;                                   \
	})

/* The mark of a task, if it has one. Most tasks of the machine have none, nor anything else of programs: one look says so. */
INLINE struct mark_state *mark_if_any(struct task_struct *task)
{
	if (!POINTER(task_struct, (u64)task, bpf_storage))
		return NULL;
	return bpf_task_storage_get(&marks, task, 0, 0);
}

/* A task enters a call of which no record is made while another is pending (pass_entry). Returns 0 if it is in no run. */
GLOBAL u32 pass_pending(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mark_state *m;

	if (!is_in_scope(present_cgroup((u64)task), SLOT_ENTER))
		return 0;
	m = mark_in_run(task, SLOT_ENTER);
	if (!m)
		return 0;
	missed_pending(m);
	return 1;
}

/* A call is entered of which no record is made, and no mark. But what is marked was before it: if it has not ended by now, its
 * end was missed, and an end that is still to come is none of it. */
INLINE void pass_entry(struct task_struct *task)
{
	struct mark_state *m = mark_if_any(task);

	if (!m || (m->pending && !pass_pending()))
		return;
	m->forked = 0;
	m->last = 0;
}

/* Was an earlier copy at the entry of this call? To ask that first costs less than to find out whether the task is in the scope. */
INLINE bool entry_is_known(struct task_struct *task, u32 call)
{
	struct mark_state *m = copy ? mark_if_any(task) : NULL;

	if (!m || m->pending != call || m->entered >> copy || !is_of_run(m))
		return false;
	m->entered |= 1 << copy;
	return true;
}

/* No earlier copy was. Is this the first one that runs? A mark that is still set belongs to a call whose end no copy of
 * on_sys_exit saw. Without memory for a mark, copy 0 is. */
INLINE bool first_at_entry(struct task_struct *task, u32 call)
{
	struct mark_state *m = mark_in_run(task, SLOT_ENTER);

	if (!m)
		return !copy;
	missed_pending(m);
	m->forked = 0;
	m->pending = call;
	m->calls++;
	m->entered = 1 << copy;
	m->enter_copy = copy;
	m->seen = 1;
	return true;
}

/* Was an earlier copy at the end of this call? */
INLINE bool end_is_known(struct task_struct *task, u32 call)
{
	struct mark_state *m = copy ? mark_if_any(task) : NULL;

	if (!m || m->pending || m->last != call || m->exited >> copy || !is_of_run(m))
		return false;
	m->exited |= 1 << copy;
	return true;
}

/* No earlier copy was. Is this the first one that runs? */
INLINE bool first_at_exit(struct task_struct *task, u32 call)
{
	struct mark_state *m = mark_in_run(task, SLOT_EXIT);

	if (!m)
		return first_unmarked(SLOT_EXIT);
	if (m->pending != call)
		missed_pending(m);
	m->ending = m->pending ? m->calls : 0;
	m->pending = 0;
	m->first = !m->seen;
	m->seen = 1;
	m->last = call;
	m->exited = 1 << copy;
	m->exit_copy = copy;
	return true;
}

/* The end of a call whose work another probe does. Did that probe run? If the task was in the
 * call while the probes were attached, its work was perhaps done before. */
INLINE void check_other_probe(struct task_struct *task, u32 class)
{
	struct mark_state *m = mark_of(task);

	if (!m)
		return;
	if (class == CLASS_EXEC && m->execs != task->self_exec_id) {
		m->execs = task->self_exec_id;
		if (!copied_calls || !m->first)
			missed_one(m->run, SLOT_EXEC);
	}
	if (class == CLASS_FORK && !m->forked && (!copied_calls || !m->first))
		missed_one(m->run, SLOT_FORK);
	m->forked = 0;
}

/* Is this the first copy that runs for this io_uring submission? Its place is a number that
 * the ring counts. */
INLINE bool first_at_submit(u64 ring, u32 head)
{
	struct mark_state *m;

	if (!copied_tasks)
		return true;
	m = mark_of(bpf_get_current_task_btf());
	if (!m)
		return first_unmarked(SLOT_URING_SUBMIT);
	if (m->ring == ring && m->ring_head == head)
		return false;
	m->ring = ring;
	m->ring_head = head;
	m->submit_copy = copy;
	return true;
}

INLINE bool first_at_exec(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mark_state *m;

	if (!copied_tasks)
		return true;
	m = mark_in_run(task, SLOT_EXEC);
	if (!m)
		return first_unmarked(SLOT_EXEC);
	if (m->execs == task->self_exec_id)
		return false;
	m->execs = task->self_exec_id;
	m->exec_copy = copy;
	if (m->pending && pending_desc(m)->class == CLASS_EXEC)
		m->pending = 0;
	return true;
}

INLINE bool first_at_fork(struct task_struct *child)
{
	struct mark_state *m;
	u64 born = child->start_boottime;
	u32 tid = child->pid;

	if (!copied_tasks)
		return true;
	m = mark_in_run(bpf_get_current_task_btf(), SLOT_FORK);
	if (!m)
		return first_unmarked(SLOT_FORK);
	if (m->child_born == born && m->child == tid)
		return false;
	m->child_born = born;
	m->child = tid;
	m->forked = 1;
	m->fork_copy = copy;
	return true;
}

/* A signal has no number: the copies that have run for one are noted with the task that sends it. Without memory for that each tells
 * it: several alarms say what one says, and none would say nothing. */
INLINE bool first_at_signal(void)
{
	struct mark_state *m;

	if (!copied_tasks)
		return true;
	m = mark_of(bpf_get_current_task_btf());
	if (!m)
		return true;
	if (m->signalled && !(m->signalled >> copy)) {
		m->signalled |= 1 << copy;
		return false;
	}
	m->signalled = 1 << copy;
	return true;
}

INLINE bool first_at_task_exit(void)
{
	struct mark_state *m;

	if (!copied_tasks)
		return true;
	m = mark_in_run(bpf_get_current_task_btf(), SLOT_TASK_EXIT);
	if (!m)
		return first_unmarked(SLOT_TASK_EXIT);
	if (m->ended)
		return false;
	m->ended = 1;
	missed_pending(m);
	return true;
}

#endif
