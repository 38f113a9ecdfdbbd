/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Calls that name what they act on in a way of their own, or that are recorded only with
 * some of their arguments. */
#ifndef RUNNER_SPECIAL_H
#define RUNNER_SPECIAL_H

#include "changes.h"
#include "pathobj.h"
#include "taken.h"
#include "table.h"

/* include/uapi: bpf.h, mount.h, asm-generic/ioctls.h */
enum {
	BPF_F_PATH_FD = 1 << 14,
	FSCONFIG_CMD_CREATE = 6, /* then: reconfigure, create anew */
	FSCONFIG_CMD_LAST = 8,
	TIOCGPTPEER = 0x5441,
	EBADF = 9,
	EINVAL = 22,
};

/* Is a call of CLASS_SPECIAL with these arguments one that is looked at? */
INLINE bool special(u32 op, u64 first, u64 second)
{
	switch (op) {
	case OP_TIOCGPTPEER: /* one of all ioctls */
		return (u32)second == TIOCGPTPEER || gives_away(second) || closes_any(second);
	case OP_FSCONFIG: /* of 32 bits, as most arguments are: the kernel does not look at the rest of the register */
		return (u32)second >= FSCONFIG_CMD_CREATE && (u32)second <= FSCONFIG_CMD_LAST;
	case OP_KERNEL_FILE: /* acct without a path only ends it */
		return first;
	}
	return true;
}

/* A name of the kernel's own, as text. */
INLINE u64 put_kernel_text(struct scratch *s, u64 name)
{
	s64 n = bpf_probe_read_kernel_str(s->blob, 256, (void *)name);

	if (n < 1 || n > 256) {
		s->r.marks |= MARK_UFAULT;
		return 0;
	}
	s->r.marks |= MARK_HAS_U2;
	s->r.ulen2 = n - 1;
	return n - 1;
}

/* The arguments of BPF_OBJ_PIN and BPF_OBJ_GET, of which the program says how long they are: what it does not give is 0. */
INLINE u64 put_pin(struct scratch *s, u64 attr, u32 size)
{
	struct {
		u64 path;
		u32 fd, flags;
	} a = {};
	s32 dfd = AT_FDCWD;

	bpf_probe_read_user(&a, sizeof(a), (void *)attr);
	if (size >= sizeof(a) && a.flags & BPF_F_PATH_FD) {
		if (size < PIN_SIZE || bpf_probe_read_user(&dfd, sizeof(dfd), (void *)(attr + sizeof(a))))
			dfd = 0;
		if (s && (s->given.kept & GIVEN_SHARED || exposed_late())) /* the descriptor's number is not kept */
			s->r.marks |= MARK_CHANGED;
	}
	return put_user_path(s, 0, a.path, dfd, 0);
}

/* The second end of a terminal: what it is called is known when it is open. */
INLINE u64 put_terminal(struct scratch *s, u64 flags)
{
	u64 file = s->r.marks & MARK_UNPROVEN ? 0 : fd_file(s->r.ret);
	u32 marks;

	s->r.marks |= MARK_ARGS;
	s->r.flags = (u32)flags;
	marks = s->r.marks;
	if (can_be_opened(file, flags)) {
		s->r.clen1 = put_file(s, 0, file);
		if (still_opened(s, s->r.ret, file, !!(flags & (O_LARGEFILE | O_PATH)))) /* here the kernel does not add it */
			return s->r.clen1;
	}
	s->r.marks = marks | MARK_FDRACE | (marks & MARK_UNPROVEN ? 0 : MARK_CHANGED);
	s->r.i_mode = 0;
	return s->r.clen1 = put_file(s, 0, 0);
}

/* The source of the mount that a call made: that knows it. */
INLINE u64 put_source(struct scratch *s)
{
	u64 file = s->r.ret >= 0 && !(s->r.marks & MARK_UNPROVEN) ? fd_file(s->r.ret) : 0, n;
	u32 marks = s->r.marks;

	if (can_be_opened(file, O_PATH)) {
		n = put_kernel_text(s, POINTER(mount, POINTER(file, file, f_path.mnt) - OFFSET(struct mount, mnt), mnt_devname));
		if (still_opened(s, s->r.ret, file, true))
			return n;
		s->r.ulen2 = 0;
	}
	s->r.marks = marks | MARK_UFAULT | (s->r.ret >= 0 && !(marks & MARK_UNPROVEN) ? MARK_CHANGED : 0);
	return 0;
}

/* The kind of file system that the context of a descriptor is for. With these errors that can be of anything. */
INLINE u64 put_kind_of_context(struct scratch *s, s32 fd)
{
	u64 file = s->r.ret == -EBADF || s->r.ret == -EINVAL ? 0 : fd_file(fd), n;
	u32 marks = s->r.marks;

	n = put_kernel_text(s, file ? POINTER(file_system_type, POINTER(fs_context, POINTER(file, file, private_data), fs_type), name) : 0);
	if (!(s->given.kept & GIVEN_FILE) || s->r.ret == -EBADF || s->r.ret == -EINVAL || (file == s->given.file && !descriptor_changed(s, fd)))
		return n;
	s->r.ulen2 = 0; /* it was of another one when the call was entered, or can have been since */
	s->r.marks = marks | MARK_UFAULT | MARK_CHANGED;
	return 0;
}

/* A call without a path that did what it was asked for did it to its descriptor. */
INLINE bool by_descriptor(struct rec *r, u64 path, s32 fd)
{
	return !path && fd != AT_FDCWD && r->ret >= 0 && !(r->marks & MARK_UNPROVEN) && r->flags & AT_EMPTY_PATH;
}

/* Without a path at all it is about the place itself that the path would start from, as with an empty one: that is no fault. */
INLINE void no_fault(struct rec *r, u64 path, u32 marks)
{
	if (!path && r->ret >= 0 && !(r->marks & MARK_UNPROVEN))
		r->marks &= ~(u32)MARK_UFAULT | marks;
}

INLINE void set_attributes(struct rec *r, u64 attributes)
{
	if (attributes)
		r->op = OP_MOUNT_SETATTR;
	r->mode = 0;
	r->marks &= ~MARK_MODE;
}

/* The end of such a call: is it recorded? */
INLINE bool special_end(struct counters *c, u32 op, const u64 *v, s64 ret, bool entered)
{
	switch (op) {
	case OP_TIOCGPTPEER: /* one that failed opened nothing that has a name */
		if (!gives_away(v[1]) && !closes_any(v[1]))
			return ret >= 0;
		if (entered)
			note_giving(-1);
		if (gives_away(v[1]))
			note_received(c, ret >= 0);
		return false;
	case OP_BPF_OBJ_PIN:
		guard_bpf(v[0], ret);
		return (u32)v[0] == BPF_OBJ_PIN || (u32)v[0] == BPF_OBJ_GET;
	}
	return true;
}

/* Fills the record of such a call. Returns the bytes of its names. */
INLINE u64 on_special(struct scratch *s)
{
	const u64 *v = s->args;
	struct rec *r = &s->r;
	u64 n;

	switch (r->op) {
	case OP_TIOCGPTPEER:
		return put_terminal(s, v[2]);
	case OP_BPF_OBJ_PIN:
		if ((u32)v[0] == BPF_OBJ_GET)
			r->op = OP_BPF_OBJ_GET;
		return put_pin(s, v[1], v[2]);
	case OP_KERNEL_FILE:
		return put_user_path(s, 0, v[0], AT_FDCWD, 0);
	case OP_MQ_OPEN:
	case OP_MQ_UNLINK:
		n = put_text(s, 0, v[0], 0);
		r->marks |= MARK_HAS_U2;
		r->ulen2 = n;
		return n;
	case OP_FSMOUNT:
		return put_source(s);
	case OP_FSCONFIG:
		return put_kind_of_context(s, v[0]);
	}
	return 0;
}

#endif
