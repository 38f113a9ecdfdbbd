/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the cgroup address hooks are given: structures of the BPF ABI, fixed, no
 * relocation. */
#ifndef RUNNER_SOCKADDR_H
#define RUNNER_SOCKADDR_H

#include "helpers.h"

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
