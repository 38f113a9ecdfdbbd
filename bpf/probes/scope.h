/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Is a cgroup in the scope? For those that are not the current task's: a task that moves, a
 * socket, and where the kernel has no helper for it. */
#ifndef RUNNER_SCOPE_H
#define RUNNER_SCOPE_H

#include "loop.h"
#include "maps.h"
#include "memory.h"

/* The v2 cgroup of a task. */
INLINE u64 cgroup_of(u64 task)
{
	return POINTER(css_set, POINTER(task_struct, task, cgroups), dfl_cgrp);
}

/* The id of the present task's v2 cgroup. */
INLINE u64 present_cgroup(u64 task)
{
	if (!CAN_CAST)
		return bpf_get_current_cgroup_id();
	return POINTER(kernfs_node, POINTER(cgroup, cgroup_of(task), kn), id);
}

/* Is the present task in the scope? Most are in the cgroup itself, and to see that costs less than to ask the kernel. The
 * program of the slot asks for itself. */
INLINE bool is_in_scope(u64 cgid, u32 slot)
{
#ifdef SHARED
	u32 run = run_of_id(cgid);
	struct counters *c;

	if (!run)
		return false;
	if (enter_run(run, slot))
		return true;
	c = counters_in(run, slot);
	if (c)
		__sync_fetch_and_add(&c->scratch_missing, 1);
	return false;
#else
	return cgid == scope_cgroup_id || bpf_current_task_under_cgroup(&scope, 0) == 1;
#endif
}

/* The same for those who do not know its cgroup. */
INLINE bool present_in_scope(u32 slot)
{
#ifdef SHARED
	return is_in_scope(present_cgroup(bpf_get_current_task()), slot);
#else
	return bpf_current_task_under_cgroup(&scope, 0) == 1;
#endif
}

/* The same for a program that keeps nothing for a run, and that can be preempted. */
INLINE bool run_is_known(void)
{
#ifdef SHARED
	return run_of_id(present_cgroup(bpf_get_current_task()));
#else
	return bpf_current_task_under_cgroup(&scope, 0) == 1;
#endif
}

/* How far up in_scope looks: 32,768 levels. Each level costs the kernel 8 bytes for each one above
 * it, so nobody makes as many. Without bpf_loop, the product is what a verifier follows if it is not in pieces. */
#define LEVELS 32

/* The run that a cgroup is the scope of, as its number; no address is so small. */
INLINE u64 scope_of(u64 id)
{
#ifdef SHARED
	return run_of_id(id);
#else
	return id == scope_cgroup_id;
#endif
}

/* Is a cgroup's state that of a scope? Returns the number of its run, or its parent, or 0 at the top. */
GLOBAL u64 scope_or_parent(u64 css)
{
	struct cgroup_subsys_state *at = (void *)css;
	struct cgroup *c = NULL;
	struct kernfs_node *kn = NULL;
	u64 id = 0;

	if (READ(c, at, cgroup) || READ(kn, c, kn) || READ(id, kn, id))
		return 0;
	id = scope_of(id);
	if (id)
		return id;
	if (READ(css, at, parent))
		return 0;
	return css;
}

/* Looks for a scope among a cgroup's state and its parents. Returns the number of its run, or where to go on,
 * or 0 at the top. */
GLOBAL u64 look_up_scope(u64 css)
{
	for (int i = 0; i < LEVELS && css > RUNS; i++)
		css = scope_or_parent(css);
	return css;
}

/* The same, 32 times as far. */
GLOBAL u64 look_far_up(u64 css)
{
	for (int i = 0; i < LEVELS && css > RUNS; i++)
		css = look_up_scope(css);
	return css;
}

static long look_up_once(u32 i, u64 *css)
{
	*css = scope_or_parent(*css);
	return *css <= RUNS;
}

/* The run that has a cgroup of the v2 hierarchy as its scope, or below it; 0 if none has. */
GLOBAL u32 run_of(u64 cg)
{
	u64 css = cg + OFFSET(struct cgroup, self);

	if (no_loop) {
		for (int i = 0; i < LEVELS && css > RUNS; i++)
			css = look_far_up(css);
	} else {
		bpf_loop(LEVELS * LEVELS * LEVELS, look_up_once, &css, 0);
	}
	return css;
}

/* Is it the scope of this run, or below it? */
INLINE bool in_scope(u64 cg, u32 run)
{
	return run && run_of(cg) == run;
}

#endif
