//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The same for unix sockets (Linux 6.7). Optional, and a separate object: the others
 * load where this one does not. Only it sees io_uring's unix calls. */
#include "hook.h"
#include "sockaddr.h"

struct unix_rec {
	struct rec r;
	u8 addr[112];
};

INLINE int unix_hook(void *ctx, u16 op)
{
	struct counters *c = counters_of_hook(SLOT_SOCK);
	u64 k = (u64)bpf_cast_to_kern_ctx(ctx), len;
	struct unix_rec e;
	u32 size = 0;

	if (!c || foreign(c))
		return 1;
	__builtin_memset(e.addr, 0, sizeof(e.addr));
	begin(&e.r, op, 0);
	e.r.source = SOURCE_CGROUP;
	e.r.marks = for_ring() ? MARK_NORET | MARK_RING : MARK_NORET;
	e.r.aux2 = bpf_get_socket_cookie(ctx);
	READ_FIELD(size, bpf_sock_addr_kern, k, uaddrlen);
	len = size;
	if (len > 110)
		len = 110;
	BARRIER(len);
	len &= 127;
	if (len > 110)
		len = 110;
	if (bpf_probe_read_kernel(e.addr, len, (void *)POINTER(bpf_sock_addr_kern, k, uaddr))) {
		e.r.marks |= MARK_AFAULT;
		len = 0;
	}
	e.r.alen = len;
	emit(&e.r, sizeof(e), c, SLOT_SOCK);
	return 1;
}

SEC("cgroup/connect_unix")
int on_connect_unix(struct bpf_sock_addr *ctx)
{
	return unix_hook(ctx, OP_CONNECT);
}

SEC("cgroup/sendmsg_unix")
int on_sendmsg_unix(struct bpf_sock_addr *ctx)
{
	return unix_hook(ctx, OP_SENDMSG);
}
