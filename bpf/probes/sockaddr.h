/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the cgroup address hooks are given (structures of the BPF ABI, fixed, no relocation),
 * and what addresses mean to the kernel. */
#ifndef RUNNER_SOCKADDR_H
#define RUNNER_SOCKADDR_H

#include "helpers.h"

enum { FAMILY_UNIX = 1, FAMILY_INET = 2, FAMILY_INET6 = 10 };

#define LOOPBACK4 0x0100007f /* 127.0.0.1 in memory order */
#define LOOPBACK6 0x01000000 /* the last word of ::1 */

/* Where the kernel sends what is addressed to 0.0.0.0: to the source address of the
 * packets, or to the loopback. A socket bound to a multicast group or to the broadcast
 * address has no such source address. */
INLINE u32 from_here(u32 src)
{
	if (!src || (src & 0xf0) == 0xe0 || src == 0xffffffff)
		return LOOPBACK4;
	return src;
}

struct bpf_sock {
	u32 bound_dev_if;
	u32 family;
	u32 type;
	u32 protocol;
	u32 mark;
	u32 priority;
	u32 src_ip4;
	u32 src_ip6[4];
	u32 src_port;
};

struct bpf_sock_addr {
	u32 user_family;
	u32 user_ip4;
	u32 user_ip6[4];
	u32 user_port;
	u32 family;
	u32 type;
	u32 protocol;
	u32 msg_src_ip4;
	u32 msg_src_ip6[4];
	struct bpf_sock *sk __attribute__((aligned(8)));
};

/* The kernel's own form of it, for the addresses that the ABI has no field for. */
struct bpf_sock_addr_kern {
	void *uaddr;
	u32 uaddrlen;
} CORE;

extern void *bpf_cast_to_kern_ctx(void *obj) SEC(".ksyms") __attribute__((weak));

#endif
