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
GLOBAL u64 part_of(u64 control, u64 left, u32 compat32)
{
	u32 head = compat32 ? sizeof(struct user_cmsghdr32) : sizeof(struct user_cmsghdr), word = compat32 ? 4 : 8, n = 0;
	struct user_cmsghdr32 c32;
	struct user_cmsghdr c;

	if (left < head)
		return 0;
	if (compat32) {
		if (bpf_probe_read_user(&c32, sizeof(c32), (void *)control))
			return 0;
		c.len = c32.len;
		c.level = c32.level;
		c.type = c32.type;
	} else if (bpf_probe_read_user(&c, sizeof(c), (void *)control)) {
		return 0;
	}
	if (c.len < head || c.len > left)
		return 0;
	if (c.level == SOL_SOCKET && c.type == SCM_RIGHTS)
		n = (u32)(c.len - head) / 4;
	return ((c.len + word - 1) & (0xffffffff & -word)) << 32 | n;
}

/* Where the control data of a message are, and how many bytes of it. */
INLINE bool read_control(u64 at, bool compat32, u64 *control, u64 *left)
{
	struct user_msghdr32 h32;
	struct user_msghdr h;

	if (compat32) {
		if (bpf_probe_read_user(&h32, sizeof(h32), (void *)at))
			return false;
		*control = h32.control;
		*left = h32.controllen;
		return true;
	}
	if (bpf_probe_read_user(&h, sizeof(h), (void *)at))
		return false;
	*control = h.control;
	*left = h.controllen;
	return true;
}

/* Counts what the message brought whose header is at an address. */
GLOBAL u32 count_control(u64 at, u32 compat32)
{
	u64 part, n = 0, control, left;

	if (!read_control(at, compat32, &control, &left))
		return 0;
	for (int i = 0; i < MOST_PARTS; i++) {
		part = part_of(control, left, compat32);
		if (!part)
			break;
		n += (u32)part;
		control += part >> 32;
		left = left > part >> 32 ? left - (part >> 32) : 0;
	}
	note_received(counters_of(SLOT_EXIT), n);
	return 0;
}

/* A call that receives messages has ended. Of several messages only the first is looked at. */
INLINE void count_received(struct pt_regs *regs, bool compat32)
{
	count_control(second_argument(regs, compat32), compat32);
}

#endif
