/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Can memory change that a process has alone? Others of the run can write it with ptrace, process_vm_writev, /proc/PID/mem and userfaultfd,
 * and so can what the kernel does meanwhile for io_uring and AIO. Few programs use any of these. From the first such call of a run on,
 * what any of its calls is given counts as shared. */
#ifndef RUNNER_EXPOSED_H
#define RUNNER_EXPOSED_H

#include "maps.h"

/* The life of the run, as life_of gives it, that has made such a call; and one by which memory that may only be read can be written, too. */
struct exposure {
	u32 life, forced;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNS);
	__type(key, u32);
	__type(value, struct exposure);
} exposed SEC(".maps");

INLINE struct exposure *exposure_of(u32 run)
{
	u32 key = run - 1;

	return bpf_map_lookup_elem(&exposed, &key);
}

INLINE bool is_exposed(u32 run)
{
	struct exposure *e = exposure_of(run);

	return e && e->life && e->life == life_of(run);
}

INLINE bool is_forced(u32 run)
{
	struct exposure *e = exposure_of(run);

	return e && e->forced && e->forced == life_of(run);
}

/* Is it so at the end of a call? */
GLOBAL u32 exposed_late(void)
{
	return is_exposed(run_at(SLOT_EXIT));
}

GLOBAL u32 expose(u32 run, u32 forced)
{
	struct exposure *e = exposure_of(run);
	u32 now;

	if (!e)
		return 0;
	now = life_of(run);
	if (e->life != now)
		e->life = now;
	if (forced && e->forced != now)
		e->forced = now;
	return 0;
}

#endif
