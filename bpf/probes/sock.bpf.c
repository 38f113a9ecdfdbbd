//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Cgroup address hooks: the kernel's own copy of the address, before the call is
 * made. They run for the *socket's* cgroup, so they also see calls through io_uring, but
 * not a socket that was made outside. The syscall records say how the call ended. */
#include "hook.h"
#include "sockaddr.h"
#include "unpaired.h"

struct addr_rec {
	struct rec r;
	u8 addr[32];
};

INLINE void fill(struct bpf_sock_addr *ctx, struct addr_rec *e, u16 op, bool mapped)
{
	__builtin_memset(e->addr, 0, sizeof(e->addr));
	begin(&e->r, op, 0);
	e->r.source = SOURCE_CGROUP;
	e->r.marks = MARK_NORET;
	if (for_ring())
		e->r.marks |= MARK_RING;
	else if (has_no_record(op, mapped))
		e->r.marks |= MARK_UNPAIRED;
	e->r.aux2 = bpf_get_socket_cookie(ctx);
}

/* A send on a connected socket with control data comes here without an address. A send to
 * no address in particular goes to this machine; of a connect the socket says it later. A connect
 * to an address of another family comes here before the kernel refuses it, and means no IP address. */
INLINE int inet4(struct bpf_sock_addr *ctx, u16 op)
{
	struct counters *c = counters_of_hook(SLOT_SOCK);
	u32 ip = ctx->user_ip4;
	struct addr_rec e;

	if (!c || (op == OP_SENDMSG && !ip && !ctx->user_port) || (op == OP_CONNECT && ctx->user_family != FAMILY_INET) || foreign(c))
		return 1;
	if (op == OP_SENDMSG && !ip)
		ip = from_here(ctx->msg_src_ip4);
	fill(ctx, &e, op, ctx->family == FAMILY_INET6);
	e.addr[0] = FAMILY_INET;
	*(u16 *)&e.addr[2] = ctx->user_port;
	*(u32 *)&e.addr[4] = ip;
	e.r.alen = 16;
	emit(&e.r, REC_SIZE + 16, c, SLOT_SOCK);
	return 1;
}

INLINE int inet6(struct bpf_sock_addr *ctx, u16 op)
{
	u32 w0 = ctx->user_ip6[0], w1 = ctx->user_ip6[1], w2 = ctx->user_ip6[2], w3 = ctx->user_ip6[3];
	struct counters *c = counters_of_hook(SLOT_SOCK);
	bool any = !w0 && !w1 && !w2 && !w3;
	struct addr_rec e;

	if (!c || (op == OP_SENDMSG && any && !ctx->user_port) || (op == OP_CONNECT && ctx->user_family != FAMILY_INET6) || foreign(c))
		return 1;
	if (op == OP_SENDMSG && any)
		w3 = LOOPBACK6;
	fill(ctx, &e, op, false);
	e.addr[0] = FAMILY_INET6;
	*(u16 *)&e.addr[2] = ctx->user_port;
	*(u32 *)&e.addr[8] = w0;
	*(u32 *)&e.addr[12] = w1;
	*(u32 *)&e.addr[16] = w2;
	*(u32 *)&e.addr[20] = w3;
	e.r.alen = 28;
	emit(&e.r, REC_SIZE + 32, c, SLOT_SOCK);
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
