/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the kernel's socket says: its kind, its own address and that of its peer. */
#ifndef RUNNER_SOCKETS_H
#define RUNNER_SOCKETS_H

#include "scope.h"
#include "sockaddr.h"
#include "walk.h"

enum { FAMILY_UNSPEC = 0, FAMILY_SMC = 43 };
enum { TYPE_STREAM = 1, TYPE_DGRAM = 2, TYPE_RAW = 3, TYPE_SEQPACKET = 5, TYPE_DCCP = 6 };
enum { PROTOCOL_IP_ICMP = 1, PROTOCOL_IP_UDP = 17, PROTOCOL_IP_ICMP6 = 58, PROTOCOL_IP_SCTP = 132, PROTOCOL_IP_UDPLITE = 136, PROTOCOL_IP_MPTCP = 262 };

enum { STATE_SYN_SENT = 2, STATE_CLOSE = 7 };

#define INET_FLAGS_HDRINCL 12

/* The socket of a file; sk is 0 if it has none. */
INLINE void kind_of_file(u64 file, struct kind *k)
{
	u64 sk;

	__builtin_memset(k, 0, sizeof(*k));
	if (!file || (file_mode(file) & S_IFMT) != S_IFSOCK)
		return;
	sk = POINTER(socket, POINTER(file, file, private_data), sk);
	READ_FIELD(k->family, sock, sk, __sk_common.skc_family);
	READ_FIELD(k->type, sock, sk, sk_type);
	READ_FIELD(k->protocol, sock, sk, sk_protocol);
	k->sk = sk;
}

INLINE bool is_inet(struct kind *k)
{
	return k->family == FAMILY_INET || k->family == FAMILY_INET6;
}

/* The kernel's number of the socket, 0 if it has none yet. The hook gives it one. Of MPTCP the
 * hook sees another socket, that of a subflow. */
INLINE u64 cookie_of(struct kind *k)
{
	if (!k->sk || k->protocol == PROTOCOL_IP_MPTCP)
		return 0;
	return word(k->sk + OFFSET(struct sock, __sk_common.skc_cookie));
}

/* Whether what an IPv4 or IPv6 socket sends begins with an IP header of the program's own. */
INLINE bool own_header(struct kind *k)
{
	u64 v = 0;

	if (k->type != TYPE_RAW)
		return false;
	if (EXISTS(struct inet_sock___flags, inet_flags))
		return POINTER(inet_sock___flags, k->sk, inet_flags) & 1 << INET_FLAGS_HDRINCL;
	asm volatile("" ::: "memory"); /* what follows must not be done before, on kernels without it */
	v = word(k->sk + __builtin_preserve_field_info(((struct inet_sock___bits *)0)->hdrincl, 0 /* byte offset */));
	v <<= __builtin_preserve_field_info(((struct inet_sock___bits *)0)->hdrincl, 4 /* left shift */);
	return v >> __builtin_preserve_field_info(((struct inet_sock___bits *)0)->hdrincl, 5 /* right shift */);
}

/* The socket that a record is about. */
GLOBAL u32 set_kind(struct scratch *s, u64 file)
{
	struct kind *k;

	if (!s)
		return 0;
	k = &s->kind;
	kind_of_file(file, k);
	if (!is_inet(k))
		return 0;
	k->inet = 1;
	k->udp = k->type == TYPE_DGRAM && (k->protocol == PROTOCOL_IP_UDP || k->protocol == PROTOCOL_IP_UDPLITE);
	k->header = own_header(k);
	return 0;
}

/* Whether a datagram was ever sent in pieces (MSG_MORE, UDP_CORK) by this socket. Only the first piece of one
 * has a destination: it stays there, of IPv6 with the protocol. */
INLINE bool sent_pieces(struct kind *k)
{
	return (u32)word(k->sk + OFFSET(struct inet_sock, cork.fl.u.ip4.daddr)) || (u8)word(k->sk + OFFSET(struct inet_sock, cork.fl.u.__fl_common.flowic_proto));
}

/* Whether the kernel shows the address of each send to the hook before it uses it: of
 * UDP, where the socket was made in the scope. */
INLINE bool hooked(struct kind *k)
{
	return in_scope(POINTER(sock, k->sk, sk_cgrp_data.cgroup), run_at(SLOT_EXIT));
}

/* The name of a unix socket: the path of the file that it is bound to, as the kernel has it, or
 * the abstract name; blob offset 0 holds the family. */
INLINE u64 put_unix(struct scratch *s, u64 sk)
{
	u64 dentry, addr;
	s64 n;

	if (!sk)
		return 2;
	dentry = POINTER(unix_sock, sk, path.dentry);
	if (dentry) {
		s->r.clen1 = put_path(s, 2, POINTER(unix_sock, sk, path.mnt), dentry);
		s->r.marks |= MARK_HAS_PATH | leaf_marks(dentry);
		return 2;
	}
	addr = POINTER(unix_sock, sk, addr);
	n = (s32)POINTER(unix_address, addr, len);
	if (!addr || n < 2)
		return 2;
	if (n > 110)
		n = 110;
	BARRIER(n);
	n &= 127;
	bpf_probe_read_kernel(&s->blob[0], n, (void *)(addr + OFFSET(struct unix_address, name)));
	return n;
}

/* Is the socket bound to a name of another mount namespace? To the present task that is not the name of it. */
GLOBAL u32 is_bound_elsewhere(u64 sk)
{
	u64 mnt = sk ? POINTER(unix_sock, sk, path.mnt) : 0, ns;

	if (!mnt)
		return 0;
	ns = POINTER(mount, mnt - OFFSET(struct mount, mnt), mnt_ns);
	return !nowhere(ns) && !is_here(ns);
}

/* The same of IPv4 and IPv6: the address and port of the socket itself, or of its peer, if it has one. */
GLOBAL u64 put_inet(struct scratch *s, u64 sk, u32 peer)
{
	u16 family = 0, port = 0;
	u8 state = 0;
	u32 ip = 0;

	if (!s || !sk)
		return 0;
	READ_FIELD(family, sock, sk, __sk_common.skc_family);
	if (family != FAMILY_INET && family != FAMILY_INET6)
		return 0;
	if (peer) {
		READ_FIELD(port, sock, sk, __sk_common.skc_dport);
		READ_FIELD(ip, sock, sk, __sk_common.skc_daddr);
		READ_FIELD(state, sock, sk, __sk_common.skc_state);
		if (!port && state == STATE_CLOSE)
			return 0; /* it has no peer any more. The address can still be there */
	} else {
		READ_FIELD(port, sock, sk, __sk_common.skc_num);
		port = port << 8 | port >> 8;
		READ_FIELD(ip, sock, sk, __sk_common.skc_rcv_saddr);
	}
	s->r.marks |= MARK_SOCKET;
	__builtin_memset(&s->blob[0], 0, ADDR_MAX);
	*(u16 *)&s->blob[0] = family;
	*(u16 *)&s->blob[2] = port;
	if (family == FAMILY_INET) {
		*(u32 *)&s->blob[4] = ip;
		return 16;
	}
	bpf_probe_read_kernel(&s->blob[8], 16, (void *)(sk + (peer ? OFFSET(struct sock, __sk_common.skc_v6_daddr) :
									 OFFSET(struct sock, __sk_common.skc_v6_rcv_saddr))));
	return 28;
}

/* The address of a socket at blob offset 0, as getsockname gives it, or that of its peer, as
 * getpeername does. Returns its length, 0 if it is of a family that is not known here or has no peer. */
GLOBAL u64 put_socket(struct scratch *s, u64 sk, u32 peer)
{
	u16 family = 0;

	if (!s || !sk)
		return 0;
	READ_FIELD(family, sock, sk, __sk_common.skc_family);
	if (family != FAMILY_UNIX)
		return put_inet(s, sk, peer);
	s->r.marks |= MARK_SOCKET;
	__builtin_memset(&s->blob[0], 0, ADDR_MAX);
	*(u16 *)&s->blob[0] = family;
	return put_unix(s, peer ? POINTER(unix_sock, sk, peer) : sk);
}

#endif
