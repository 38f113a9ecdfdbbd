/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls that come to the address hook and have no record of what it sees. Its record must not be taken for that of a later
 * call: of one that fails before it comes to the hook. */
#ifndef RUNNER_UNPAIRED_H
#define RUNNER_UNPAIRED_H

#include "call.h"
#include "record.h"
#include "sysnum.h"

enum network_call { OTHER_CALL, CALL_CONNECT, CALL_SENDTO, CALL_MESSAGES, UNKNOWN_CALL };

#define KIND_OF_CALL(A, messages)      \
	switch (nr) {                  \
	case A##_CONNECT:              \
		return CALL_CONNECT;   \
	case A##_SENDTO:               \
		return CALL_SENDTO;    \
	case A##_SENDMSG:              \
	case A##_SENDMMSG:             \
		return messages;       \
	}

/* Unknown are calls of 32-bit programs whose arguments the probes do not read; they are counted (CLASS_UNMAPPED). */
INLINE enum network_call kind_of_call(u32 nr, bool compat32)
{
#if defined(__TARGET_ARCH_x86)
	if (nr >= X32_CALLS || (compat32 && nr == I386_SOCKETCALL))
		return UNKNOWN_CALL;
	if (compat32) {
		KIND_OF_CALL(I386, UNKNOWN_CALL)
	} else {
		KIND_OF_CALL(X86_64, CALL_MESSAGES)
	}
#else
	if (compat32) {
		KIND_OF_CALL(ARM, UNKNOWN_CALL)
	} else {
		KIND_OF_CALL(ARM64, CALL_MESSAGES)
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
	u64 a[8];

	read_args(regs, compat32, a);
	switch (kind_of_call(call_number(regs), compat32)) {
	case CALL_CONNECT:
		return op != OP_CONNECT;
	case CALL_SENDTO:
		return op == OP_CONNECT || (mapped && (!a[4] || !(u32)a[5]));
	case CALL_MESSAGES:
		return op == OP_CONNECT || (mapped && unnamed_message(a[1]));
	case UNKNOWN_CALL:
		return false;
	default:
		return true;
	}
}

#endif
