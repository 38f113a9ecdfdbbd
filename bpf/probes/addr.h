/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Socket calls at their exit. The address of a call that succeeded is the one that the kernel
 * used: of connect, bind and listen the socket has it. Of a send it is what the program gave,
 * unless the kernel ignores that. */
#ifndef RUNNER_ADDR_H
#define RUNNER_ADDR_H

#include "sockets.h"

enum { MSG_FASTOPEN = 0x20000000 };

/* Emits the record, with alen bytes of address at blob offset 0. After it comes the path of a
 * unix socket that put_unix has written or, of a path as the program gave it, the directory that
 * it starts from: the working directory, or the process root, which a chroot changes. */
INLINE void emit_addr(struct scratch *s, u32 key, u64 alen, struct counters *c)
{
	struct path_pair base;
	u64 off = alen;

	s->r.alen = alen;
	if (s->r.marks & MARK_HAS_PATH) {
		off += s->r.clen1;
	} else if (alen > 2 && s->blob[0] == FAMILY_UNIX && s->blob[1] == 0 && s->blob[2] != 0) {
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

/* Whether a send that succeeded ignored the address that it was given. */
INLINE bool ignored(struct kind *k, u32 flags)
{
	if (k->family == FAMILY_UNIX)
		return k->type == TYPE_SEQPACKET;
	if (k->type == TYPE_DCCP)
		return is_inet(k);
	if (k->type != TYPE_STREAM || flags & MSG_FASTOPEN)
		return false;
	return k->family == FAMILY_SMC || (is_inet(k) && k->protocol != PROTOCOL_IP_SCTP);
}

/* The destination in the IP header that the program made itself. Its first piece must hold it. */
INLINE u64 put_header(struct scratch *s)
{
	bool six = s->kind.family == FAMILY_INET6;
	u64 packet = s->send.packet, len = s->send.len;
	u64 at = six ? 24 : 16, n = six ? 16 : 4;

	__builtin_memset(&s->blob[0], 0, ADDR_MAX);
	*(u16 *)&s->blob[0] = s->kind.family;
	if (!packet || len < at + n ||
	    (six ? bpf_probe_read_user(&s->blob[8], 16, (void *)(packet + at)) :
		   bpf_probe_read_user(&s->blob[4], 4, (void *)(packet + at)))) {
		s->r.marks |= MARK_AFAULT;
		return 2;
	}
	return six ? 28 : 16;
}

/* Makes of the address that a send was given the one that the kernel used. */
INLINE void as_used(struct scratch *s, u64 alen)
{
	struct kind *k = &s->kind;
	u16 *family = (u16 *)&s->blob[0];

	if (!is_inet(k) || alen < 16)
		return;
	if (*family == FAMILY_UNSPEC && (k->family == FAMILY_INET || k->type == TYPE_RAW))
		*family = k->family;
	if (k->type == TYPE_RAW || (k->type == TYPE_DGRAM && (k->protocol == PROTOCOL_IP_ICMP || k->protocol == PROTOCOL_IP_ICMP6)))
		*(u16 *)&s->blob[2] = 0; /* no ports there: the kernel does not look at it */
	if (*family == FAMILY_INET && !*(u32 *)&s->blob[4]) {
		u64 sk = k->sk;
		u32 own = 0;

		READ_FIELD(own, sock, sk, __sk_common.skc_rcv_saddr);
		*(u32 *)&s->blob[4] = from_here(own);
	}
	if (*family == FAMILY_INET6 && alen >= 24 && !*(u64 *)&s->blob[8] && !*(u64 *)&s->blob[16])
		s->blob[23] = 1;
}

/* Emits the address that a send goes to, if it is given one or its packet has one. */
GLOBAL u32 put_destination(u32 key)
{
	struct counters *c = counters_of(SLOT_EXIT);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	u64 alen = 0;
	bool done;

	if (!c || !s)
		return 1;
	done = s->r.ret >= 0 && s->kind.sk && !(s->r.marks & MARK_UNPROVEN);
	s->r.marks &= ~(u32)(MARK_AFAULT | MARK_HAS_PATH | MARK_SOCKET | MARK_HOOKED | MARK_CHANGED);
	if (done && own_header(&s->kind)) {
		emit_addr(s, key, put_header(s), c);
		return 0;
	}
	if (!s->send.name || !s->send.namelen || (done && ignored(&s->kind, s->send.flags)))
		return 0;
	if (done && s->send.flags & MSG_FASTOPEN && s->kind.type == TYPE_STREAM)
		alen = put_inet(key, s->kind.sk, 1);
	if (!alen) {
		alen = put_addr(s, s->send.name, s->send.namelen);
		if (done) {
			as_used(s, alen);
			if (is_udp(&s->kind))
				s->r.marks |= hooked(&s->kind) ? MARK_HOOKED : sent_pieces(&s->kind) ? MARK_CHANGED : 0;
		}
	}
	emit_addr(s, key, alen, c);
	return 0;
}

/* Takes what a message is given from its header, which is at an address. If that cannot be read,
 * nor can the name: this address is none. */
#define NOWHERE ~0ULL

GLOBAL u32 read_message(u32 key, u64 at)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct user_msghdr h;
	struct user_iovec v = {};

	if (!s)
		return 1;
	if (bpf_probe_read_user(&h, sizeof(h), (void *)at)) {
		s->send.name = NOWHERE;
		s->send.namelen = 1;
		s->send.len = 0;
		return 0;
	}
	if (h.iovlen)
		bpf_probe_read_user(&v, sizeof(v), (void *)h.iov);
	s->send.name = h.name;
	s->send.namelen = h.namelen;
	s->send.packet = v.base;
	s->send.len = v.len;
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
	read_message(m->key, m->vec + i * MMSGHDR_SIZE);
	put_destination(m->key);
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
	kind_of_fd(a[0], &s->kind);
	r->aux2 = cookie_of(&s->kind);
	switch (r->op) {
	case OP_CONNECT:
	case OP_BIND: {
		u64 alen = 0;

		if (r->marks & MARK_UNPROVEN)
			s->kind.sk = 0;
		if (!r->ret || (r->op == OP_CONNECT && r->ret == -EINPROGRESS))
			alen = put_socket(key, s->kind.sk, r->op == OP_CONNECT);
		emit_addr(s, key, alen ? alen : put_addr(s, a[1], (u32)a[2]), c);
		break;
	}
	case OP_SENDTO:
		s->send = (struct send){ .name = a[4], .namelen = a[5], .packet = a[1], .len = a[2], .flags = a[3] };
		put_destination(key);
		break;
	case OP_SENDMSG:
		s->send.flags = a[2];
		read_message(key, a[1]);
		put_destination(key);
		break;
	case OP_SENDMMSG: {
		struct mmsg m = { .vec = a[1], .sent = r->ret < 0 ? 1 : r->ret, .key = key };

		s->send.flags = a[3];
		put_messages(&m);
		break;
	}
	case OP_LISTEN:
		emit_addr(s, key, put_socket(key, s->kind.sk, 0), c);
		break;
	}
}

#endif
