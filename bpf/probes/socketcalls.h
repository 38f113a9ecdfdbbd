/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Socket calls at their exit. The address of a call that succeeded is the one that the kernel
 * used: of connect, bind and listen the socket has it. Of a send it is what the program gave,
 * unless the kernel ignores that. What other threads can change under the call is kept when it is entered. */
#ifndef RUNNER_SOCKETCALLS_H
#define RUNNER_SOCKETCALLS_H

#include "addr.h"
#include "keep.h"

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

/* The destination in the IP header that the program made itself. Its first piece must hold it. */
INLINE u64 put_header(struct scratch *s)
{
	bool six = s->kind.family == FAMILY_INET6;
	u64 packet = s->send.packet, len = s->send.len;
	u64 at = six ? 24 : 16, n = six ? 16 : 4;

	*(u16 *)&s->blob[0] = s->kind.family;
	if (!packet || len < at + n ||
	    (six ? bpf_probe_read_user(&s->blob[8], 16, (void *)(packet + at)) :
		   bpf_probe_read_user(&s->blob[4], 4, (void *)(packet + at)))) {
		s->r.marks |= MARK_AFAULT;
		return 2;
	}
	return six ? 28 : 16;
}

/* Takes what a message is given from its header, which is at an address. If that cannot be read,
 * nor can the name: this address is none. */
#define NOWHERE ~0ULL
#define HEADER_MAX 40 /* bytes of an IP header that has a destination */

GLOBAL u32 read_message(struct scratch *s, u64 at)
{
	struct user_msghdr h;
	struct user_iovec v = {};

	if (!s)
		return 1;
	s->send.head = at;
	s->send.packet = s->send.iov = 0;
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
	s->send.iov = h.iovlen ? h.iov : 0;
	s->send.packet = v.base;
	s->send.len = v.len;
	return 0;
}

/* Takes what a call is given; of several messages, the first one's. */
INLINE void read_given(struct scratch *s, u32 op)
{
	const u64 *a = s->args;

	s->send.later = s->send.unknown = 0;
	s->send.vec = s->send.end = 0;
	switch (op) {
	case OP_SENDTO:
		s->send = (struct send){ .name = a[4], .namelen = a[5], .packet = a[1], .len = a[2], .flags = a[3] };
		break;
	case OP_SENDMSG:
	case OP_SENDMMSG:
		s->send.flags = op == OP_SENDMSG ? a[2] : a[3];
		read_message(s, a[1]);
		if (op == OP_SENDMMSG) {
			s->send.vec = a[1];
			s->send.end = a[1] + (u64)(u32)a[2] * MMSGHDR_SIZE;
		}
		break;
	default:
		s->send = (struct send){ .name = a[1], .namelen = a[2] };
	}
}

/* Puts the address that a call is given or, of a send, its packet has. Returns the bytes there; without an address none. */
GLOBAL u64 put_given(struct scratch *s, u32 header)
{
	if (!s)
		return 0;
	__builtin_memset(&s->blob[0], 0, ADDR_MAX);
	if (header)
		return put_header(s);
	return s->send.name && s->send.namelen ? put_addr(s, s->send.name, s->send.namelen) : 0;
}

INLINE bool sends(u32 op)
{
	return op == OP_SENDTO || op == OP_SENDMSG || op == OP_SENDMMSG;
}

INLINE bool is_in(u64 at, u64 len, u64 from, u64 end)
{
	return at < end && at + len > from;
}

/* Does sendmmsg itself write to what a message is given? It does so after it has sent each. */
INLINE bool overwrites(struct send *m)
{
	return is_in(m->name, m->namelen, m->vec, m->end) || is_in(m->packet, HEADER_MAX, m->vec, m->end) ||
	       is_in(m->iov, sizeof(struct user_iovec), m->vec, m->end);
}

/* Can other processes change what a message is given? */
GLOBAL u32 others_reach_message(struct scratch *s, u32 header)
{
	if (!s)
		return 0;
	if (header)
		return others_reach(s, s->send.packet, HEADER_MAX) || others_reach(s, s->send.iov, sizeof(struct user_iovec));
	return s->send.namelen && others_reach(s, s->send.name, s->send.namelen);
}

/* Keeps what a socket call is given that could change under it. s->args has its arguments. */
GLOBAL u32 keep_socket(struct scratch *s, u32 op, u32 shared)
{
	struct given *g;
	struct name *n;
	bool header;
	u64 len;

	if (!s)
		return 0;
	g = &s->given;
	g->since = bpf_ktime_get_ns();
	set_kind(s, fd_file(s->args[0]));
	if (shared & SHARES_FILES) {
		g->file = fd_file(s->args[0]);
		g->kept |= GIVEN_FILES | GIVEN_FILE;
	}
	if (op == OP_LISTEN)
		return 0;
	g->kept |= keep_start(g, s->task, shared);
	s->r.marks = 0;
	header = sends(op) && s->kind.header;
	if (sends(op) && s->kind.type == TYPE_RAW)
		g->kept |= GIVEN_RAW | (header ? GIVEN_HEADER : 0);
	read_given(s, op);
	if (shared & SHARES_MEMORY || others_reach_message(s, header) || (s->send.head && others_reach(s, s->send.head, MMSGHDR_SIZE)))
		g->kept |= GIVEN_SHARED;
	else if (!overwrites(&s->send))
		return 0;
	len = put_given(s, header);
	if (!len && !s->r.marks) {
		g->kept |= GIVEN_NO_ADDRESS;
		return 0;
	}
	n = name_of_task(0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!n) { /* no memory: nobody knows */
		g->kept |= GIVEN_NO_ADDRESS;
		return 0;
	}
	n->text_len = len;
	n->marks = s->r.marks;
	__builtin_memcpy(n->text, s->blob, ADDR_MAX);
	g->kept |= GIVEN_ADDRESS;
	return 0;
}

/* Can others change the address of this call before the kernel takes it, and does it not show to a hook what it takes? */
INLINE bool unseen(struct scratch *s)
{
	return s->given.kept & GIVEN_SHARED && !((s->r.op == OP_CONNECT ? s->kind.inet : sends(s->r.op) && s->kind.udp) && hooked(&s->kind));
}

/* Are two addresses the same? In a loop: a compiler that sees all of it compares byte by byte. */
INLINE bool same_address(u8 *now, u8 *then)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < ADDR_MAX; i += 8)
		if (*(u64 *)(now + i) != *(u64 *)(then + i))
			return false;
	return true;
}

/* Puts the address that a call is given, as it was when the call was entered. Where it is another one now, or could be,
 * nobody knows which of them the kernel took. */
GLOBAL u64 put_taken(struct scratch *s, struct counters *c, u32 header, u32 is_unseen)
{
	u64 len = put_given(s, header);
	struct name *n;

	if (!s || !c)
		return 0;
	if (len && is_unseen)
		__sync_fetch_and_add(&c->shared_arguments, 1);
	if (s->send.unknown || (len && !(s->given.kept & GIVEN_SHARED) && exposed_late()))
		s->r.marks |= MARK_CHANGED;
	if (s->send.later || !(s->given.kept & GIVEN_ADDRESS)) {
		if (len && s->given.kept & (s->send.later ? GIVEN_SHARED : GIVEN_NO_ADDRESS))
			s->r.marks |= MARK_CHANGED;
		return len;
	}
	n = name_of_task(0, 0);
	if (!n)
		return len;
	if (len == n->text_len && same_address(s->blob, n->text))
		return len;
	if (n->marks & MARK_AFAULT) { /* it was not in memory yet */
		s->r.marks |= MARK_CHANGED;
		return len;
	}
	__builtin_memcpy(s->blob, n->text, ADDR_MAX);
	s->r.marks = (s->r.marks & ~(u32)MARK_AFAULT) | n->marks | (s->given.kept & GIVEN_SHARED ? MARK_CHANGED : 0);
	return n->text_len;
}

/* The socket of a call; none if the descriptor was changed meanwhile, since then nobody knows which it was. */
INLINE void take_socket(struct scratch *s, s32 fd)
{
	struct given *g = &s->given;
	u64 file = fd_file(fd);

	set_kind(s, file);
	if (!(g->kept & GIVEN_FILE) || (file == g->file && !descriptor_changed(s, fd)))
		return;
	s->kind.sk = 0;
	s->kind.header = 0;
	s->kind.changed = 1;
	s->r.marks |= MARK_CHANGED;
}

/* Takes what one message of sendmmsg is given. The first one's can be kept. */
INLINE void take_message(struct scratch *s, u32 i)
{
	read_message(s, s->send.vec + i * MMSGHDR_SIZE);
	s->send.later = i;
	s->send.unknown = (i || !(s->given.kept & (GIVEN_ADDRESS | GIVEN_NO_ADDRESS))) &&
			  (overwrites(&s->send) || others_reach(s, s->send.head, MMSGHDR_SIZE) || others_reach_message(s, s->kind.header));
}

/* Emits the address that a send goes to, if it is given one or its packet has one. */
GLOBAL u32 put_destination(struct scratch *s, struct counters *c, u32 i)
{
	bool done, header;
	u64 alen = 0;

	if (!c || !s)
		return 1;
	if (s->r.op == OP_SENDMMSG)
		take_message(s, i);
	done = s->r.ret >= 0 && s->kind.sk && !(s->r.marks & MARK_UNPROVEN);
	s->r.marks &= ~(u32)(MARK_AFAULT | MARK_HAS_PATH | MARK_SOCKET | MARK_HOOKED | MARK_CHANGED);
	if (s->kind.changed)
		s->r.marks |= MARK_CHANGED;
	header = s->kind.header;
	if (s->given.kept & GIVEN_RAW && header != !!(s->given.kept & GIVEN_HEADER))
		s->r.marks |= MARK_CHANGED; /* somebody else has the socket too */
	if (!done && header)
		s->given.kept &= ~(u32)(GIVEN_ADDRESS | GIVEN_NO_ADDRESS); /* what was kept is the header's */
	if (done && !header) {
		if (ignored(s, s->send.flags))
			return 0;
		if (s->send.flags & MSG_FASTOPEN && s->kind.type == TYPE_STREAM)
			alen = put_inet(s, s->kind.sk, 1);
	}
	if (!alen) {
		alen = put_taken(s, c, done && header, unseen(s));
		if (!alen && !(s->r.marks & MARK_AFAULT))
			return 0;
		if (done && !header) {
			as_used(s, alen);
			if (s->kind.udp) {
				if (hooked(&s->kind) && !s->send.unknown)
					s->r.marks = (s->r.marks & ~(u32)MARK_CHANGED) | MARK_HOOKED;
				else if (sent_pieces(&s->kind))
					s->r.marks |= MARK_CHANGED;
			}
		}
	}
	emit_addr(s, alen, c, SLOT_EXIT);
	return 0;
}

#define MESSAGES 1024 /* as many as one sendmmsg sends */

struct mmsg {
	struct scratch *s;
	struct counters *c;
	u64 sent;
};

static long mmsg_step(u32 i, struct mmsg *m)
{
	if (i >= m->sent)
		return 1;
	put_destination(m->s, m->c, i);
	return 0;
}

/* The address that a connect or bind used. A socket that was connected to an address without a family has no peer. One that
 * has none after any other connect was let go by another thread, or that changed the address. */
INLINE u64 put_own(struct scratch *s, struct counters *c)
{
	bool connects = s->r.op == OP_CONNECT;
	u32 marks = s->r.marks;
	u64 alen = 0;

	if (s->r.marks & MARK_UNPROVEN)
		s->kind.sk = 0;
	if (connects && !s->r.ret)
		s->r.aux1 = is_deferred(&s->kind);
	/* to no family: the peer is let go. A socket of MPTCP has it still */
	if (connects && !s->r.ret && s->kind.sk && s->kind.protocol == PROTOCOL_IP_MPTCP && put_taken(s, c, 0, unseen(s)) >= 2 &&
	    *(u16 *)&s->blob[0] == FAMILY_UNSPEC) {
		s->r.marks |= MARK_SOCKET;
		*(u16 *)&s->blob[0] = s->kind.family;
		return 2;
	}
	s->r.marks = marks;
	if (!s->r.ret || (connects && s->r.ret == -EINPROGRESS))
		alen = put_socket(s, s->kind.sk, connects);
	if (alen && connects && s->kind.family == FAMILY_UNIX && is_bound_elsewhere(POINTER(unix_sock, s->kind.sk, peer))) {
		s->r.marks = marks; /* then what it was given says how the program calls it */
		s->r.clen1 = 0;
		alen = 0;
	}
	if (alen)
		return alen;
	alen = put_taken(s, c, 0, unseen(s));
	if (!alen && !s->send.name)
		s->r.marks |= MARK_AFAULT;
	if (!connects || s->r.ret || !s->kind.sk || !s->kind.inet || s->kind.protocol == PROTOCOL_IP_SCTP)
		return alen;
	if (*(u16 *)&s->blob[0] != FAMILY_UNSPEC) {
		s->r.marks |= MARK_CHANGED;
		return alen;
	}
	s->r.marks |= MARK_SOCKET;
	*(u16 *)&s->blob[0] = s->kind.family;
	return 2;
}

/* A send without a name goes to the connected peer. Its connect was recorded, or the
 * socket was inherited, which is a declared blind spot. */
INLINE void on_sock(struct scratch *s, struct counters *c)
{
	struct rec *r = &s->r;
	struct mmsg m;

	r->source = SOURCE_SYSCALL;
	take_socket(s, s->args[0]);
	r->aux2 = cookie_of(&s->kind);
	switch (r->op) {
	case OP_LISTEN:
		emit_addr(s, put_socket(s, s->kind.sk, 0), c, SLOT_EXIT);
		return;
	case OP_SENDMMSG:
		s->alone.end = 0; /* of whom it is is not known */
		read_given(s, r->op);
		m = (struct mmsg){ .s = s, .c = c, .sent = r->ret < 0 ? 1 : r->ret };
		LOOP(MESSAGES, mmsg_step, &m);
		return;
	}
	read_given(s, r->op);
	if (sends(r->op))
		put_destination(s, c, 0);
	else
		emit_addr(s, put_own(s, c), c, SLOT_EXIT);
}

#endif
