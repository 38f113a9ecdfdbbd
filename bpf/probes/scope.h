/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Is a cgroup in the scope? For those that are not the current task's: a task that moves, a
 * socket, and where the kernel has no helper for it. */
#ifndef RUNNER_SCOPE_H
#define RUNNER_SCOPE_H

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

/* Is the present task in the scope? Most are in the cgroup itself, and to see that costs less than to ask the kernel. */
INLINE bool is_in_scope(u64 cgid)
{
	return cgid == scope_cgroup_id || bpf_current_task_under_cgroup(&scope, 0) == 1;
}

/* How far up in_scope looks: 32,768 levels. Each level costs the kernel 8 bytes for each one above
 * it, so nobody makes as many. The product is what a verifier follows if it is not in pieces. */
#define LEVELS 32
#define SCOPE_FOUND 1ULL /* no address is so small */

/* Is a cgroup's state that of the scope? Returns SCOPE_FOUND, or its parent, or 0 at the top. */
GLOBAL u64 scope_or_parent(u64 css)
{
	struct cgroup_subsys_state *at = (void *)css;
	struct cgroup *c = NULL;
	struct kernfs_node *kn = NULL;
	u64 id = 0;

	if (READ(c, at, cgroup) || READ(kn, c, kn) || READ(id, kn, id))
		return 0;
	if (id == scope_cgroup_id)
		return SCOPE_FOUND;
	if (READ(css, at, parent))
		return 0;
	return css;
}

/* Looks for the scope among a cgroup's state and its parents. Returns SCOPE_FOUND, or where to go on,
 * or 0 at the top. */
GLOBAL u64 look_up_scope(u64 css)
{
	for (int i = 0; i < LEVELS && css > SCOPE_FOUND; i++)
		css = scope_or_parent(css);
	return css;
}

/* The same, 32 times as far. */
GLOBAL u64 look_far_up(u64 css)
{
	for (int i = 0; i < LEVELS && css > SCOPE_FOUND; i++)
		css = look_up_scope(css);
	return css;
}

/* Is a cgroup of the v2 hierarchy the scope itself or below it? */
GLOBAL u32 in_scope(u64 cg)
{
	u64 css = cg + OFFSET(struct cgroup, self);

	for (int i = 0; i < LEVELS && css > SCOPE_FOUND; i++)
		css = look_far_up(css);
	return css == SCOPE_FOUND;
}

#endif
