/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Socket calls at their exit: the address from the caller's memory or, for listen, from
 * the socket itself. */
#ifndef RUNNER_ADDR_H
#define RUNNER_ADDR_H

#include "walk.h"

enum { FAMILY_UNIX = 1, FAMILY_INET = 2, FAMILY_INET6 = 10 };

/* Emits the record, with alen bytes of address at blob offset 0. After a unix path
 * comes the directory that it starts from: the working directory, or the process
 * root, which a chroot changes. */
INLINE void emit_addr(struct scratch *s, u32 key, u64 alen, struct counters *c)
{
	struct path_pair base;
	u64 off = alen;

	s->r.alen = alen;
	if (alen > 2 && s->blob[0] == FAMILY_UNIX && s->blob[1] == 0 && s->blob[2] != 0) {
		base_path(s->blob[2] == '/', AT_FDCWD, &base);
		s->r.clen1 = put_path(key, off, base.mnt, base.dentry);
		off += s->r.clen1;
		s->r.marks |= MARK_HAS_BASE1;
	} else {
		s->r.clen1 = 0;
		s->r.marks &= ~(u32)MARK_HAS_BASE1;
	}
	BARRIER(off);
	if (off > BLOB_LAST)
		off = BLOB_LAST;
	emit(&s->r, REC_SIZE + off, c);
}

/* Reads a user sockaddr to blob offset 0; returns the bytes there. */
INLINE u64 put_addr(struct scratch *s, u64 ptr, u64 len)
{
	if (len > ADDR_MAX)
		len = ADDR_MAX;
	BARRIER(len);
	len &= 255;
	if (!ptr || len > ADDR_MAX || bpf_probe_read_user(&s->blob[0], len, (void *)ptr)) {
		s->r.marks |= MARK_AFAULT;
		return 0;
	}
	return len;
}

/* The local address of a listening socket, in sockaddr form. */
INLINE u64 put_local(struct scratch *s, u64 file)
{
	struct socket *sock = NULL;
	struct sock *sk = NULL;
	u16 family = 0, port = 0;

	if (!file || (file_mode(file) & S_IFMT) != S_IFSOCK)
		return 0;
	if (READ(sock, (struct file *)file, private_data) || !sock || READ(sk, sock, sk) || !sk ||
	    READ(family, sk, __sk_common.skc_family))
		return 0;
	__builtin_memset(&s->blob[0], 0, ADDR_MAX);
	*(u16 *)&s->blob[0] = family;
	if (family == FAMILY_UNIX) {
		struct unix_address *addr = NULL;
		s32 n = 0;
		u64 len;

		if (READ(addr, (struct unix_sock *)sk, addr) || !addr || READ(n, addr, len) || n < 2)
			return 2;
		len = n;
		if (len > 110)
			len = 110;
		BARRIER(len);
		len &= 127;
		bpf_probe_read_kernel(&s->blob[0], len, (void *)((u64)addr + OFFSET(struct unix_address, name)));
		return len;
	}
	READ(port, sk, __sk_common.skc_num);
	*(u16 *)&s->blob[2] = port << 8 | port >> 8;
	if (family == FAMILY_INET) {
		READ(*(u32 *)&s->blob[4], sk, __sk_common.skc_rcv_saddr);
		return 16;
	}
	if (family == FAMILY_INET6) {
		bpf_probe_read_kernel(&s->blob[8], 16, __builtin_preserve_access_index(&sk->__sk_common.skc_v6_rcv_saddr));
		return 28;
	}
	return 2;
}

/* Emits the address of one message of sendmmsg, whose header is at an address. */
GLOBAL u32 put_message(u32 key, u64 at)
{
	struct counters *c = counters_of(SLOT_EXIT);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct user_msgname h;

	if (!c || !s)
		return 1;
	if (bpf_probe_read_user(&h, sizeof(h), (void *)at)) {
		s->r.marks |= MARK_AFAULT;
		emit_addr(s, key, 0, c);
	} else if (h.name && h.namelen) {
		emit_addr(s, key, put_addr(s, h.name, h.namelen), c);
	}
	return 0;
}

#define MESSAGES 1024 /* as many as one sendmmsg sends */

struct mmsg {
	u64 vec;
	u64 sent;
	u32 key;
	u32 pad;
};

static long mmsg_step(u32 i, struct mmsg *m)
{
	if (i >= m->sent)
		return 1;
	put_message(m->key, m->vec + i * MMSGHDR_SIZE);
	return 0;
}

INLINE void put_messages(struct mmsg *m)
{
	if (no_loop) {
		for (u32 i = 0; i < MESSAGES; i++)
			if (mmsg_step(i, m))
				break;
	} else {
		bpf_loop(MESSAGES, mmsg_step, m, 0);
	}
}

/* A send without a name goes to the connected peer. Its connect was recorded, or the
 * socket was inherited, which is a declared blind spot. */
INLINE void on_sock(struct scratch *s, u32 key, u64 *a, struct counters *c)
{
	struct rec *r = &s->r;

	r->source = SOURCE_SYSCALL;
	switch (r->op) {
	case OP_CONNECT:
	case OP_BIND:
		emit_addr(s, key, put_addr(s, a[1], (u32)a[2]), c);
		break;
	case OP_SENDTO:
		if (a[4] && (u32)a[5])
			emit_addr(s, key, put_addr(s, a[4], (u32)a[5]), c);
		break;
	case OP_SENDMSG: {
		struct user_msgname h;

		if (bpf_probe_read_user(&h, sizeof(h), (void *)a[1])) {
			r->marks |= MARK_AFAULT;
			emit_addr(s, key, 0, c);
		} else if (h.name && h.namelen) {
			emit_addr(s, key, put_addr(s, h.name, h.namelen), c);
		}
		break;
	}
	case OP_SENDMMSG: {
		struct mmsg m = { .vec = a[1], .sent = r->ret > 0 ? r->ret : 1, .key = key };

		put_messages(&m);
		break;
	}
	case OP_LISTEN:
		emit_addr(s, key, put_local(s, fd_file(a[0])), c);
		break;
	}
}

#endif
