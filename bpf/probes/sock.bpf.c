//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Cgroup address hooks: the kernel's own copy of the address, before the call is
 * made. They run for the *socket's* cgroup, so they also see calls through io_uring, but
 * not a socket that was made outside. The syscall records say how the call ended. */
#include "maps.h"
#include "sockaddr.h"

struct addr_rec {
	struct rec r;
	u8 addr[32];
};

INLINE void fill(struct addr_rec *e, u16 op)
{
	__builtin_memset(e->addr, 0, sizeof(e->addr));
	begin(&e->r, op, 0);
	e->r.source = SOURCE_CGROUP;
	e->r.marks = MARK_NORET;
}

INLINE int inet4(struct bpf_sock_addr *ctx, u16 op)
{
	struct counters *c = counters_of(SLOT_SOCK);
	struct addr_rec e;

	if (!c)
		return 1;
	fill(&e, op);
	e.addr[0] = 2;
	*(u16 *)&e.addr[2] = ctx->user_port;
	*(u32 *)&e.addr[4] = ctx->user_ip4;
	e.r.alen = 16;
	emit(&e.r, REC_SIZE + 16, c);
	return 1;
}

INLINE int inet6(struct bpf_sock_addr *ctx, u16 op)
{
	struct counters *c = counters_of(SLOT_SOCK);
	struct addr_rec e;

	if (!c)
		return 1;
	fill(&e, op);
	e.addr[0] = 10;
	*(u16 *)&e.addr[2] = ctx->user_port;
	*(u32 *)&e.addr[8] = ctx->user_ip6[0];
	*(u32 *)&e.addr[12] = ctx->user_ip6[1];
	*(u32 *)&e.addr[16] = ctx->user_ip6[2];
	*(u32 *)&e.addr[20] = ctx->user_ip6[3];
	e.r.alen = 28;
	emit(&e.r, REC_SIZE + 32, c);
	return 1;
}

SEC("cgroup/connect4")
int on_connect4(struct bpf_sock_addr *ctx)
{
	return inet4(ctx, OP_CONNECT);
}

SEC("cgroup/connect6")
int on_connect6(struct bpf_sock_addr *ctx)
{
	return inet6(ctx, OP_CONNECT);
}

SEC("cgroup/sendmsg4")
int on_sendmsg4(struct bpf_sock_addr *ctx)
{
	return inet4(ctx, OP_SENDMSG);
}

SEC("cgroup/sendmsg6")
int on_sendmsg6(struct bpf_sock_addr *ctx)
{
	return inet6(ctx, OP_SENDMSG);
}
