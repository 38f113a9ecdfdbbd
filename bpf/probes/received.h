/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counts the descriptors that messages bring. The kernel wrote the messages to the program's memory; another thread can have
 * changed them since. */
#ifndef RUNNER_RECEIVED_H
#define RUNNER_RECEIVED_H

#include "guard.h"
#include "keep.h"
#include "table.h"

#define SOL_SOCKET 1
#define SCM_RIGHTS 1
#define MOST_PARTS 4 /* of control data; descriptors come last */

/* One part of control data: its length, and below that how many descriptors it brought; 0 if there is none. A verifier checks
 * it once: older ones follow each way through all parts otherwise. */
GLOBAL u64 part_of(u64 control, u64 left)
{
	struct user_cmsghdr c;
	u32 n = 0;

	if (left < sizeof(c) || bpf_probe_read_user(&c, sizeof(c), (void *)control) || c.len < sizeof(c) || c.len > left)
		return 0;
	if (c.level == SOL_SOCKET && c.type == SCM_RIGHTS)
		n = (u32)(c.len - sizeof(c)) / 4;
	return ((c.len + 7) & 0xfffffff8) << 32 | n;
}

/* A call that receives messages has ended. Of several messages only the first is looked at. */
INLINE void count_received(struct pt_regs *regs)
{
	struct user_msghdr h;
	u64 part, n = 0, args[8];

	read_args(regs, false, args);
	if (bpf_probe_read_user(&h, sizeof(h), (void *)args[1]) || !h.controllen)
		return;
	for (int i = 0; i < MOST_PARTS; i++) {
		part = part_of(h.control, h.controllen);
		if (!part)
			break;
		n += (u32)part;
		h.control += part >> 32;
		h.controllen = h.controllen > part >> 32 ? h.controllen - (part >> 32) : 0;
	}
	note_received(n);
}

#endif
