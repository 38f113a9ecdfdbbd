/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which cgroups belong to a run that shares probes: that of the run itself, and each one that is made below. A cgroup is in the table
 * before any task can be in it: the kernel tells that it was made while it holds the one mutex that a task would need to enter. */
#ifndef RUNNER_CGROUPS_H
#define RUNNER_CGROUPS_H

#include "tasks.h"

/* Is it of the v2 hierarchy? Others number their cgroups in the same way. */
INLINE bool is_v2(u64 cg)
{
	return hierarchy_of(cg) == hierarchy_of(cgroup_of(bpf_get_current_task()));
}

INLINE u64 parent_of(u64 cg)
{
	struct cgroup_subsys_state *at = (void *)(cg + OFFSET(struct cgroup, self));
	struct cgroup *c = NULL;
	u64 parent = 0;

	READ(parent, at, parent);
	at = (void *)parent;
	READ(c, at, cgroup);
	return (u64)c;
}

SEC("tp_btf/cgroup_mkdir")
int on_cgroup_made(u64 *ctx)
{
	u64 cg = address(ctx, 0), id = cgroup_id_of(cg);
	struct member m = { .id = id };
	struct counters *c;
	u64 parent;

	if (!is_v2(cg))
		return 0;
	parent = cgroup_id_of(parent_of(cg));
	m.run = run_of_id(parent);
	if (!m.run)
		return 0;
	if (!bpf_map_update_elem(&members, &id, &m, 0)) {
		if (run_of_id(parent) != m.run) /* it has ended meanwhile: who took its cgroups out has not seen this one */
			bpf_map_delete_elem(&members, &id);
		return 0;
	}
	c = counters_in(m.run, SLOT_MOVE); /* what its tasks do will not be seen */
	if (c)
		__sync_fetch_and_add(&c->scratch_missing, 1);
	return 0;
}

SEC("tp_btf/cgroup_rmdir")
int on_cgroup_removed(u64 *ctx)
{
	u64 cg = address(ctx, 0), id = cgroup_id_of(cg);

	if (is_v2(cg))
		bpf_map_delete_elem(&members, &id);
	return 0;
}

#endif
