/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Records with a socket address, and what the kernel makes of the one that a send is given. */
#ifndef RUNNER_ADDR_H
#define RUNNER_ADDR_H

#include "changes.h"
#include "sockets.h"

enum { MSG_FASTOPEN = 0x20000000 };

/* Completes the record's alen bytes of address at blob offset 0. After it comes the path of a
 * unix socket that put_unix has written or, of a path as the program gave it, the directory that
 * it starts from: the working directory, or the process root, which a chroot changes. Returns the bytes of all. */
GLOBAL u64 complete_addr(struct scratch *s, u64 alen)
{
	struct path_pair base;
	u64 off = alen;

	if (!s)
		return 0;
	s->r.alen = alen;
	if (s->r.marks & MARK_HAS_PATH) {
		off += s->r.clen1;
	} else if (alen > 2 && s->blob[0] == FAMILY_UNIX && s->blob[1] == 0 && s->blob[2] != 0) {
		struct path_pair *then = s->blob[2] == '/' ? &s->given.root : &s->given.pwd;

		base_path(s->blob[2] == '/', AT_FDCWD, &base);
		if (s->given.kept & GIVEN_START && (!same_place(then, &base) || start_changed(s))) {
			s->r.marks = (s->r.marks & ~(u32)MARK_HAS_BASE1) | MARK_CHANGED;
			s->r.clen1 = 0;
			return off;
		}
		s->r.clen1 = put_path(s, off, base.mnt, base.dentry);
		off += s->r.clen1;
		s->r.marks |= MARK_HAS_BASE1;
	} else {
		s->r.clen1 = 0;
		s->r.marks &= ~(u32)MARK_HAS_BASE1;
	}
	return off;
}

INLINE void emit_addr(struct scratch *s, u64 alen, struct counters *c, u8 slot)
{
	send_record(s, complete_addr(s, alen), c, slot);
}

/* Does a connect that succeeded only begin when the first data are sent (TCP_FASTOPEN_CONNECT)? Any other has ended then. */
INLINE bool is_deferred(struct kind *k)
{
	u64 sk = k->sk;
	u8 state = 0;

	if (!sk || !k->inet || k->type != TYPE_STREAM)
		return false;
	READ_FIELD(state, sock, sk, __sk_common.skc_state);
	return state == STATE_SYN_SENT;
}

/* Whether a send that succeeded ignored the address that it was given. */
GLOBAL u32 ignored(struct scratch *s, u32 flags)
{
	struct kind *k;

	if (!s)
		return 0;
	k = &s->kind;
	if (k->family == FAMILY_UNIX)
		return k->type == TYPE_SEQPACKET;
	if (k->type == TYPE_DCCP)
		return k->inet;
	if (k->type != TYPE_STREAM || flags & MSG_FASTOPEN)
		return false;
	return k->family == FAMILY_SMC || (k->inet && k->protocol != PROTOCOL_IP_SCTP);
}

/* Makes of the address that a send was given the one that the kernel used. */
GLOBAL u32 as_used(struct scratch *s, u64 alen)
{
	struct kind *k;
	u16 *family;

	if (!s)
		return 0;
	k = &s->kind;
	family = (u16 *)&s->blob[0];
	if (!k->inet || alen < 16)
		return 0;
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
	return 0;
}

#endif
