//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Network rules for IPv4 and IPv6, checked before the call is made. They read the
 * kernel's copy of the address, which the program can no longer change, and run for
 * the *socket's* cgroup: no matter who makes the call, io_uring too. */
#include "rules.h"

/* The entry that refuses sockets whose destinations no hook checks. */
const volatile u32 socket_entry;

struct ask {
	u64 addr[2];
	u32 family;
	u32 port;
	u32 hook;
	u32 protocol;
	u32 wild; /* a bind to all addresses: a rule that denies any of them matches */
	u32 found;
};

struct inet_rec {
	struct rec r;
	u8 addr[32];
};

/* A separate function, as is first_rule: the verifier checks it once. */
GLOBAL u32 applies_to_port(u32 entry, u32 port)
{
	struct rule *r = bpf_map_lookup_elem(&rules, &entry);

	for (int i = 0; r && i < RULE_PORTS && i < r->nports; i++)
		if (port >= r->ports[i].from && port <= r->ports[i].to)
			return 1;
	return 0;
}

/* What a call asks for, but for its address and port, in one number. */
INLINE u32 kind_of(struct ask *a)
{
	return a->family | a->hook << 8 | a->protocol << 16 | a->wild << 24;
}

/* Whether the entry decides. */
GLOBAL u32 applies(u32 entry, u64 addr0, u64 addr1, u32 kind, u32 port)
{
	struct rule *r = bpf_map_lookup_elem(&rules, &entry);
	u32 family = kind & 0xff, hook = kind >> 8 & 0xff, protocol = kind >> 16 & 0xff, wild = kind >> 24;

	if (!r || !(r->on & hook) || (r->protocols && !(r->protocols & protocol)))
		return 0;
	if (r->family != FAMILY_ANY) {
		if (r->family != family)
			return 0;
		if (!(wild && r->deny) &&
		    ((addr0 & r->mask[0]) != r->addr[0] || (addr1 & r->mask[1]) != r->addr[1]))
			return 0;
	}
	return !r->nports || applies_to_port(entry, port);
}

static long step(u32 i, struct ask *a)
{
	if (!applies(i + 1, a->addr[0], a->addr[1], kind_of(a), a->port))
		return 0;
	a->found = i + 1;
	return 1;
}

/* The entry that decides, 0 for the default. */
GLOBAL u32 first_rule(u64 addr0, u64 addr1, u32 kind, u32 port)
{
	struct ask a = {
		.addr = { addr0, addr1 },
		.family = kind & 0xff,
		.hook = kind >> 8 & 0xff,
		.protocol = kind >> 16 & 0xff,
		.wild = kind >> 24,
		.port = port,
	};

	if (no_loop) {
		for (u32 i = 0; i < rule_count; i++)
			if (step(i, &a))
				break;
	} else {
		bpf_loop(rule_count, step, &a, 0);
	}
	return a.found;
}

INLINE u32 decide(struct ask *a)
{
	return first_rule(a->addr[0], a->addr[1], kind_of(a), a->port);
}

INLINE void ask_of(struct bpf_sock_addr *ctx, struct ask *a, u32 hook)
{
	u16 port = ctx->user_port;

	__builtin_memset(a, 0, sizeof(*a));
	a->hook = hook;
	a->port = (u16)(port << 8 | port >> 8);
	/* MPTCP asks for its subflows, which are TCP */
	a->protocol = ctx->protocol == 6 || ctx->protocol == 262 ? PROTOCOL_TCP : PROTOCOL_UDP;
}

INLINE int inet4(struct bpf_sock_addr *ctx, u32 hook)
{
	u32 ip = ctx->user_ip4, entry;
	struct inet_rec e;
	struct ask a;

	ask_of(ctx, &a, hook);
	/* a send on a connected socket with control data comes without an address */
	if (hook == HOOK_SEND && !ip && !a.port)
		return 1;
	a.family = FAMILY_INET;
	a.addr[0] = ip;
	a.wild = hook == HOOK_BIND && !ip;
	entry = decide(&a);
	if (hook != HOOK_BIND && !ip && !(entry && denies(entry))) {
		u32 to = from_here(hook == HOOK_SEND ? ctx->msg_src_ip4 : ctx->sk->src_ip4);

		a.addr[0] = to;
		entry = decide(&a);
		/* the call goes to the address that was checked, whatever happens to the socket */
		if (!denies(entry))
			ctx->user_ip4 = to;
	}
	if (!denies(entry))
		return 1;
	__builtin_memset(e.addr, 0, sizeof(e.addr));
	e.addr[0] = FAMILY_INET;
	*(u16 *)&e.addr[2] = ctx->user_port;
	*(u32 *)&e.addr[4] = ip;
	return refuse(&e.r, hook, entry, 16, REC_SIZE + 16);
}

INLINE int inet6(struct bpf_sock_addr *ctx, u32 hook)
{
	u32 w0 = ctx->user_ip6[0], w1 = ctx->user_ip6[1], w2 = ctx->user_ip6[2], w3 = ctx->user_ip6[3];
	bool mapped = !w0 && !w1 && w2 == 0xffff0000;
	bool any = !w0 && !w1 && (mapped || !w2) && !w3;
	struct inet_rec e;
	struct ask a;
	u32 entry;

	ask_of(ctx, &a, hook);
	if (hook == HOOK_SEND && any && !a.port)
		return 1;
	a.family = mapped ? FAMILY_INET : FAMILY_INET6;
	a.addr[0] = mapped ? w3 : (u64)w1 << 32 | w0;
	a.addr[1] = mapped ? 0 : (u64)w3 << 32 | w2;
	a.wild = hook == HOOK_BIND && any;
	entry = decide(&a);
	if (a.wild && !mapped && !denies(entry)) { /* it takes IPv4 too */
		a.family = FAMILY_INET;
		entry = decide(&a);
	}
	if (hook != HOOK_BIND && any && !(entry && denies(entry))) {
		u32 src = ctx->sk->src_ip4, to;
		bool four = mapped || (!ctx->sk->src_ip6[0] && !ctx->sk->src_ip6[1] && ctx->sk->src_ip6[2] == 0xffff0000);

		/* :: is ::1, but 127.0.0.1 for a socket that is bound to an IPv4 address */
		if (four)
			to = mapped ? from_here(src) : LOOPBACK4;
		else
			to = LOOPBACK6;
		a.family = four ? FAMILY_INET : FAMILY_INET6;
		a.addr[0] = four ? to : 0;
		a.addr[1] = four ? 0 : (u64)to << 32;
		entry = decide(&a);
		if (!denies(entry)) {
			ctx->user_ip6[2] = four ? 0xffff0000 : 0;
			ctx->user_ip6[3] = to;
		}
	}
	if (!denies(entry))
		return 1;
	__builtin_memset(e.addr, 0, sizeof(e.addr));
	e.addr[0] = FAMILY_INET6;
	*(u16 *)&e.addr[2] = ctx->user_port;
	*(u32 *)&e.addr[8] = w0;
	*(u32 *)&e.addr[12] = w1;
	*(u32 *)&e.addr[16] = w2;
	*(u32 *)&e.addr[20] = w3;
	return refuse(&e.r, hook, entry, 28, REC_SIZE + 32);
}

SEC("cgroup/connect4")
int rule_connect4(struct bpf_sock_addr *ctx)
{
	return inet4(ctx, HOOK_CONNECT);
}

SEC("cgroup/connect6")
int rule_connect6(struct bpf_sock_addr *ctx)
{
	return inet6(ctx, HOOK_CONNECT);
}

SEC("cgroup/sendmsg4")
int rule_sendmsg4(struct bpf_sock_addr *ctx)
{
	return inet4(ctx, HOOK_SEND);
}

SEC("cgroup/sendmsg6")
int rule_sendmsg6(struct bpf_sock_addr *ctx)
{
	return inet6(ctx, HOOK_SEND);
}

SEC("cgroup/bind4")
int rule_bind4(struct bpf_sock_addr *ctx)
{
	return inet4(ctx, HOOK_BIND);
}

SEC("cgroup/bind6")
int rule_bind6(struct bpf_sock_addr *ctx)
{
	return inet6(ctx, HOOK_BIND);
}

/* Only TCP, MPTCP and UDP call the hooks above for every destination: raw and ICMP
 * sockets send anywhere, UDP-Lite and SCTP connect without a check. */
SEC("cgroup/sock_create")
int rule_socket(struct bpf_sock *ctx)
{
	u32 type = ctx->type, protocol = ctx->protocol;
	struct inet_rec e;

	if ((type == 1 && (protocol == 6 || protocol == 262)) || (type == 2 && protocol == 17))
		return 1;
	__builtin_memset(e.addr, 0, sizeof(e.addr));
	e.addr[0] = ctx->family;
	return refuse(&e.r, HOOK_SOCKET, socket_entry, 2, REC_SIZE + 8);
}
