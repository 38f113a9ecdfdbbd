//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Used where uring.bpf.c does not load: says whether io_uring was used at all, so
 * that "not covered" is a counted fact and not a guess. */
#include "maps.h"

SEC("tp_btf/io_uring_create")
int on_create(u64 *ctx)
{
	struct counters *c = counters_of(SLOT_URING_SUBMIT);

	if (c && bpf_current_task_under_cgroup(&scope, 0) == 1)
		__sync_fetch_and_add(&c->io_uring_unmapped, 1);
	return 0;
}
