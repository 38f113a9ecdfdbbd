//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How a TCP connect ended that had not when its call did. The kernel calls this for sockets of the scope only,
 * as their owner or in the softirq that brings the answer: the present task can be any. Optional, and a
 * separate object: without it such connects stay pending. */
#include "maps.h"

/* A structure of the BPF ABI: fixed, no relocation. */
struct bpf_sock_ops {
	u32 op;
	u32 args[4];
	u32 family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4];
	u32 remote_port, local_port, is_fullsock, snd_cwnd, srtt_us;
	u32 cb_flags;
	u32 rest[20];
	u64 bytes_received, bytes_acked;
	void *sk;
};

_Static_assert(__builtin_offsetof(struct bpf_sock_ops, cb_flags) == 84 && __builtin_offsetof(struct bpf_sock_ops, sk) == 184, "the kernel's ABI");

enum { CONNECT_CB = 3, STATE_CB = 10, STATE_CB_FLAG = 1 << 2 };
enum { STATE_ESTABLISHED = 1, STATE_SYN_SENT = 2, STATE_SYN_RECV = 3, STATE_CLOSED = 7 };

static long (*bpf_sock_ops_cb_flags_set)(struct bpf_sock_ops *ctx, u32 flags) = (void *)59;
static struct sock *(*bpf_skc_to_tcp_sock)(void *sk) = (void *)137; /* a struct tcp_sock, which begins with it */

/* The error that the socket's owner is told; 0 if there is none, since the owner itself has ended the connect. */
INLINE s32 error_of(struct bpf_sock_ops *ctx)
{
	struct sock *sk = ctx->sk;

	if (!sk)
		return 0;
	sk = bpf_skc_to_tcp_sock(sk);
	return sk ? sk->sk_err : 0;
}

SEC("sockops")
int on_connect_end(struct bpf_sock_ops *ctx)
{
	u32 op = ctx->op, from, to;
	struct counters *c;
	struct rec r;
	s32 err = 0;

	if (op == CONNECT_CB)
		bpf_sock_ops_cb_flags_set(ctx, ctx->cb_flags | STATE_CB_FLAG);
	if (op != STATE_CB)
		return 1;
	from = ctx->args[0];
	to = ctx->args[1];
	if ((from != STATE_SYN_SENT && from != STATE_SYN_RECV) || to == STATE_SYN_RECV)
		return 1;
	c = counters_of_hook(SLOT_RESULT);
	if (!c)
		return 1;
	__builtin_memset(&r, 0, sizeof(r));
	r.op = OP_CONNECT_END;
	r.ktime = bpf_ktime_get_ns();
	r.cpu = bpf_get_smp_processor_id();
	r.aux2 = bpf_get_socket_cookie(ctx);
	if (to != STATE_ESTABLISHED) {
		if (to == STATE_CLOSED)
			err = error_of(ctx);
		r.ret = -(s64)err;
		if (!err)
			r.marks = MARK_NORET;
	}
	emit(&r, REC_SIZE, c, SLOT_RESULT);
	return 1;
}
