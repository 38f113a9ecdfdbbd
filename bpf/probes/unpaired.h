/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls that come to the address hook and have no record of what it sees. Its record must not be taken for that of a later
 * call: of one that fails before it comes to the hook. */
#ifndef RUNNER_UNPAIRED_H
#define RUNNER_UNPAIRED_H

#include "compat.h"
#include "record.h"
#include "sysnum.h"

/* Does the message name no address? Of several messages the first one is looked at. What cannot be read is taken for one
 * that names it. */
INLINE bool unnamed_message(u64 message)
{
	struct user_msghdr h;

	return !bpf_probe_read_user(&h, sizeof(h), (void *)message) && (!h.name || !h.namelen);
}

/* Has the system call that the hook runs in no record of this operation? A send can connect (MSG_FASTOPEN), and so can other calls.
 * An IPv6 socket that is connected to an IPv4 address (mapped) sends to its peer as if it had been named (udpv6_sendmsg), whatever call
 * it is. A 32-bit call is taken for one that has a record. */
INLINE bool has_no_record(u16 op, bool mapped)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = bpf_task_pt_regs(task);
	u64 message = 0, name = 0, length = 0;

	if (is_compat(task))
		return false;
#if defined(__TARGET_ARCH_x86)
	u64 nr = 0;

	READ(nr, regs, orig_ax);
	if ((u32)nr >= X32_CALLS)
		return false;
	switch ((u32)nr) {
	case X86_64_CONNECT:
		return op != OP_CONNECT;
	case X86_64_SENDTO:
		READ(name, regs, r8);
		READ(length, regs, r9);
		return op == OP_CONNECT || (mapped && (!name || !(u32)length));
	case X86_64_SENDMSG:
	case X86_64_SENDMMSG:
		READ(message, regs, si);
		return op == OP_CONNECT || (mapped && unnamed_message(message));
	}
#else
	s32 nr = 0;

	READ(nr, regs, syscallno);
	switch (nr) {
	case ARM64_CONNECT:
		return op != OP_CONNECT;
	case ARM64_SENDTO:
		READ(name, regs, regs[4]);
		READ(length, regs, regs[5]);
		return op == OP_CONNECT || (mapped && (!name || !(u32)length));
	case ARM64_SENDMSG:
	case ARM64_SENDMMSG:
		READ(message, regs, regs[1]);
		return op == OP_CONNECT || (mapped && unnamed_message(message));
	}
#endif
	return true;
}

#endif
