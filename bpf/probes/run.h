/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Probes that several runs share: whose event is this? Each cgroup that belongs to a run is in a table. A program that finds the
 * cgroup of its task there keeps the run's number for as long as it runs, in a place where nobody else's number can be. The usual kernel
 * (settings.h) lets it run once at a time on a CPU and not be preempted: each program has one place on each. Elsewhere it has copies and
 * goes on in a body that many tasks are in: each task has one place for each program. Each run has its ring, its counters and its alarms.
 *
 * Numbers of runs begin with 1; 0 is none. ../shared_linux.go loads these objects, and fills the tables. */
#ifndef RUNNER_RUN_H
#define RUNNER_RUN_H

#include "helpers.h"
#include "record.h"

#ifdef SHARED
#define RUNS 256

/* What is known of a run. A place without a cgroup is free. */
struct run {
	u64 cgroup_id;
	u32 capture_tgid; /* as guard.h says; the supervisor is 0 where there is none */
	u32 supervisor_tgid;
	u32 read_arguments;
	u32 alive; /* a map that only the run's capture holds: it is gone when that has ended */
	u32 ended; /* nothing more is told to it: its capture counts what there is */
	u32 left; /* of a free place: ../sharedplace_linux.go */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNS);
	__type(key, u32);
	__type(value, struct run);
} runs SEC(".maps");

/* Whose a cgroup is. The kernel can use the memory of an entry again while it is read: so the id is here once more, before the
 * number. */
struct member {
	u64 id;
	u32 run;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct member);
} members SEC(".maps");

struct one_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, RUNS);
	__type(key, u32);
	__type(value, u32);
	__array(values, struct one_ring);
} rings SEC(".maps");

/* Whose event each program is at, by its slot. */
#ifdef USUAL
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, u32);
} present SEC(".maps");

INLINE u32 *place_of(u32 slot, bool make)
{
	return bpf_map_lookup_elem(&present, &slot);
}
#else
struct present_of_task {
	u32 run[SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, struct present_of_task);
} present_of_task SEC(".maps");

INLINE u32 *place_of(u32 slot, bool make)
{
	struct present_of_task *p = bpf_task_storage_get(&present_of_task, bpf_get_current_task_btf(), 0, make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

	return p && slot < SLOTS ? &p->run[slot] : NULL;
}
#endif

/* The run of a program that is attached to its cgroup. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_STORAGE);
	__type(key, u64);
	__type(value, u64);
} hooked_run SEC(".maps");

INLINE u32 run_of_id(u64 id)
{
	volatile struct member *m = bpf_map_lookup_elem(&members, &id);
	u32 run;

	if (!m)
		return 0;
	run = m->run;
	return m->id == id ? run : 0;
}

#ifdef USUAL
INLINE u32 run_at(u32 slot)
#else
GLOBAL u32 run_at(u32 slot)
#endif
{
	u32 *run = place_of(slot, false);

	return run ? *run : 0;
}

/* The program of this slot is at an event of this run. That fails without memory. */
INLINE bool enter_run(u32 run, u32 slot)
{
	u32 *at = place_of(slot, true);

	if (!at)
		return false;
	*at = run;
	return true;
}

INLINE struct run *the_run(u32 run)
{
	u32 key = run - 1;

	return run ? bpf_map_lookup_elem(&runs, &key) : NULL;
}

/* What tells a run from a later one with the same number: for what is kept longer than a program runs. */
INLINE u32 life_of(u32 run)
{
	struct run *r = the_run(run);

	return r ? r->alive : 0;
}

/* Is it still told what was kept for it? */
INLINE bool is_told(u32 run, u32 life)
{
	struct run *r = the_run(run);

	return r && r->alive == life && !r->ended;
}
#else
#define RUNS 1

/* There is one. */
INLINE u32 run_at(u32 slot)
{
	return 1;
}

INLINE u32 life_of(u32 run)
{
	return 1;
}

INLINE bool is_told(u32 run, u32 life)
{
	return life == 1;
}

INLINE bool enter_run(u32 run, u32 slot)
{
	return true;
}
#endif

#endif
