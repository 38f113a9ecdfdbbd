/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls that come to the address hook and have no record of what it sees. Its record must not be taken for that of a later
 * call: of one that fails before it comes to the hook. */
#ifndef RUNNER_UNPAIRED_H
#define RUNNER_UNPAIRED_H

#include "compat.h"
#include "record.h"
#include "sysnum.h"

enum calls { OTHER_CALL, CALL_CONNECT, CALL_SENDTO, CALL_MESSAGES, UNKNOWN_CALL };

/* What the task's system call is. Those of 32-bit programs whose arguments the probes do not read are counted as such. */
INLINE enum calls kind_of_call(u32 nr, bool compat32)
{
#if defined(__TARGET_ARCH_x86)
	if (compat32)
		switch (nr) {
		case I386_CONNECT:
			return CALL_CONNECT;
		case I386_SENDTO:
			return CALL_SENDTO;
		case I386_SENDMSG:
		case I386_SENDMMSG:
		case I386_SOCKETCALL:
			return UNKNOWN_CALL;
		default:
			return OTHER_CALL;
		}
	if (nr >= X32_CALLS)
		return UNKNOWN_CALL;
	switch (nr) {
	case X86_64_CONNECT:
		return CALL_CONNECT;
	case X86_64_SENDTO:
		return CALL_SENDTO;
	case X86_64_SENDMSG:
	case X86_64_SENDMMSG:
		return CALL_MESSAGES;
	}
#else
	if (compat32)
		switch (nr) {
		case ARM_CONNECT:
			return CALL_CONNECT;
		case ARM_SENDTO:
			return CALL_SENDTO;
		case ARM_SENDMSG:
		case ARM_SENDMMSG:
			return UNKNOWN_CALL;
		default:
			return OTHER_CALL;
		}
	switch (nr) {
	case ARM64_CONNECT:
		return CALL_CONNECT;
	case ARM64_SENDTO:
		return CALL_SENDTO;
	case ARM64_SENDMSG:
	case ARM64_SENDMMSG:
		return CALL_MESSAGES;
	}
#endif
	return OTHER_CALL;
}

/* Does the message name no address? Of several messages the first one is looked at. What cannot be read is taken for one
 * that names it. */
INLINE bool unnamed_message(u64 message)
{
	struct user_msghdr h;

	return !bpf_probe_read_user(&h, sizeof(h), (void *)message) && (!h.name || !h.namelen);
}

/* Has the system call that the hook runs in no record of this operation? A send can connect (MSG_FASTOPEN), and so can other calls.
 * An IPv6 socket that is connected to an IPv4 address (mapped) sends to its peer as if it had been named (udpv6_sendmsg), whatever call
 * it is. */
INLINE bool has_no_record(u16 op, bool mapped)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = bpf_task_pt_regs(task);
	bool compat32 = is_compat(task);
	u64 message = 0, name = 0, length = 0;

#if defined(__TARGET_ARCH_x86)
	u64 nr = 0;

	READ(nr, regs, orig_ax);
	READ(message, regs, si);
	if (compat32) {
		READ(name, regs, di);
		READ(length, regs, bp);
	} else {
		READ(name, regs, r8);
		READ(length, regs, r9);
	}
#else
	s32 nr = 0;

	READ(nr, regs, syscallno);
	READ(message, regs, regs[1]);
	READ(name, regs, regs[4]);
	READ(length, regs, regs[5]);
#endif
	if (compat32)
		name = (u32)name;
	switch (kind_of_call(nr, compat32)) {
	case CALL_CONNECT:
		return op != OP_CONNECT;
	case CALL_SENDTO:
		return op == OP_CONNECT || (mapped && (!name || !(u32)length));
	case CALL_MESSAGES:
		return op == OP_CONNECT || (mapped && unnamed_message(message));
	case UNKNOWN_CALL:
		return false;
	default:
		return true;
	}
}

#endif
