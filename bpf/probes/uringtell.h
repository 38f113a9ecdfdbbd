/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The record of a request of io_uring, in parts that a verifier checks once. */
#ifndef RUNNER_URINGTELL_H
#define RUNNER_URINGTELL_H

#include "addr.h"
#include "changes.h"
#include "guardfile.h"
#include "uringrequest.h"

/* How a request is recorded. */
enum how {
	NO_RESULT = 1 << 0,  /* it has none yet, and perhaps never will */
	ELSEWHERE = 1 << 1,  /* by a task with other descriptors or another working directory */
	OTHER_ROOT = 1 << 3, /* by one that can also have another root */
	WAS_SILENT = 1 << 2, /* for the second time: it had its record already */
};

/* What is told of a request is copied first: it is in one of two maps, and of what is read there a verifier would follow each
 * way twice. Other functions find the copy in the scratch record. */
INLINE struct request *told(struct scratch *s)
{
	return (struct request *)s->told.head;
}

/* The request itself, if it was not taken out meanwhile. */
INLINE struct request *find_told(struct scratch *s)
{
	u32 place = s->told.place;
	u64 req = s->told.req;

	return s->told.kept ? bpf_map_lookup_elem(&requests, &req) : blank_at(place);
}

/* Copies the request without its texts. Returns 0 if it is there. */
GLOBAL u32 copy_told(struct scratch *s)
{
	struct request *q;

	if (!s)
		return 1;
	q = find_told(s);
	return !q || bpf_probe_read_kernel(s->told.head, REQUEST_HEAD, q);
}

enum { TEXT_FAULT = 1, TEXT_GONE = 2 };

/* Copies n bytes of a text of the request, which begins at some place of that. */
GLOBAL u32 put_text_of(struct scratch *s, u64 off, u64 at, u64 n)
{
	struct request *q;

	BARRIER(off);
	BARRIER(at);
	BARRIER(n);
	if (!s || off > BLOB_LAST || at > sizeof(struct request) || n > BASE_MAX)
		return TEXT_FAULT;
	q = find_told(s);
	if (!q)
		return TEXT_GONE;
	return bpf_probe_read_kernel(&s->blob[off], n, (u8 *)q + at) ? TEXT_FAULT : 0;
}

/* Finds the place that a name starts from, as it is now. */
GLOBAL u32 find_base(struct scratch *s, u32 absolute, s32 dfd)
{
	if (s)
		base_path(absolute, dfd, &s->told.base);
	return 0;
}

/* Was the place that a name starts from changed after the submission? */
INLINE bool base_changed(struct scratch *s, bool absolute, s32 dfd)
{
	if (s->told.how & OTHER_ROOT || (!absolute && s->told.how & ELSEWHERE))
		return true;
	if (!absolute && dfd != AT_FDCWD)
		return descriptor_changed(s, dfd);
	return start_changed(s);
}

/* Puts the directory that a name starts from, as it was kept. If the task now has another one
 * there, or changed it and took that back, then nobody can say which of them the kernel used.
 * Returns the bytes written. */
GLOBAL u64 put_base(struct scratch *s, u64 off, u32 absolute, s32 dfd, u32 second)
{
	struct path_pair *now, *from;
	u64 n;

	if (!s)
		return 0;
	second &= 1;
	from = &told(s)->from[second];
	now = &s->told.base;
	find_base(s, absolute, dfd);
	if (now->mnt != from->mnt || now->dentry != from->dentry || base_changed(s, absolute, dfd))
		s->r.marks |= MARK_CHANGED;
	if (starts_nowhere(from, absolute, dfd)) {
		s->r.marks &= ~((u32)MARK_HAS_BASE1 << second);
		return 0;
	}
	if (off > BLOB_LAST)
		return 0;
	s->r.marks |= told(s)->clen[second] >> OF_BASE;
	n = told(s)->clen[second] & ((1 << OF_BASE) - 1);
	if (n > BASE_MAX)
		return put_path(s, off, now->mnt, now->dentry);
	if (put_text_of(s, off, BASE_AT(second), n)) {
		s->r.marks |= MARK_PFAULT;
		return 0;
	}
	return n;
}

/* Puts the name of an attribute, which is no path. Returns the new offset. */
GLOBAL u64 put_attribute(struct scratch *s, u64 off)
{
	u64 n;

	if (!s || off > BLOB_LAST)
		return off;
	n = told(s)->ulen[1];
	if (n > UPATH_MAX - 1)
		n = UPATH_MAX - 1;
	if (put_text_of(s, off, UPATH_AT(1), n)) { /* taken out meanwhile: nobody knows the name any more */
		s->r.marks |= MARK_UFAULT;
		n = 0;
	}
	s->r.ulen2 = n;
	return off + n;
}

/* Puts a name and the directory that it starts from. Returns the new offset. */
GLOBAL u64 put_name(struct scratch *s, u64 off, u32 second)
{
	u64 n, c;

	BARRIER(off);
	if (!s || off > BLOB_LAST)
		return off;
	second &= 1;
	n = told(s)->ulen[second];
	if (n > UPATH_MAX - 1)
		n = UPATH_MAX - 1;
	if (put_text_of(s, off, UPATH_AT(second), n)) { /* taken out meanwhile: nobody knows the name any more */
		s->r.marks |= MARK_UFAULT;
		return off;
	}
	c = put_base(s, off + n, n && s->blob[off] == '/', told(s)->dfd[second], second);
	if (second) {
		s->r.ulen2 = n;
		s->r.clen2 = c;
	} else {
		s->r.ulen1 = n;
		s->r.clen1 = c;
	}
	return off + n + c;
}

/* A connect to no address in particular (0.0.0.0 or [::]) has a peer, which the socket knows. One with another port is that of another
 * connect. Returns the bytes of the record's address. */
GLOBAL u64 put_reached(struct scratch *s, u64 n)
{
	u16 port, family;
	u64 len;

	if (!s || !s->kind.inet || n < 16)
		return n;
	family = *(u16 *)&s->blob[0];
	port = *(u16 *)&s->blob[2];
	if (family == FAMILY_INET6) {
		if (n < 24 || *(u64 *)&s->blob[8] || (*(u64 *)&s->blob[16] && *(u64 *)&s->blob[16] != 0xffff0000 /* of IPv4 */))
			return n;
	} else if (family != FAMILY_INET || *(u32 *)&s->blob[4]) {
		return n;
	}
	len = put_inet(s, s->kind.sk, 1);
	if (!len || *(u16 *)&s->blob[2] != port)
		s->r.marks |= MARK_CHANGED;
	return len ? len : n;
}

/* Puts the address of a socket call, whose record has begun, and where it starts from. Returns the bytes written and one; 0 if
 * there is no such record. */
GLOBAL u64 put_socket_call(struct scratch *s, u64 file)
{
	struct request *q;
	u64 n, off;
	bool done;
	u32 bad;

	if (!s)
		return 0;
	q = told(s);
	set_kind(s, file);
	s->r.aux2 = cookie_of(&s->kind);
	done = s->r.ret >= 0 && !(s->told.how & NO_RESULT);
	if (q->op == OP_CONNECT && done && !s->r.ret)
		s->r.aux1 = is_deferred(&s->kind);
	if (q->op == OP_LISTEN || (q->op == OP_BIND && done && s->kind.sk)) {
		s->r.marks &= ~(u32)MARK_HAS_BASE1;
		return complete_addr(s, put_socket(s, s->kind.sk, 0)) + 1;
	}
	n = q->ulen[0];
	if (n > ADDR_MAX)
		n = ADDR_MAX;
	if (is_send(q->op) && s->kind.sk && s->kind.inet && s->kind.type == TYPE_RAW && s->r.ret >= 0) {
		if (n && !s->kind.header) /* nobody knows what it was when it was sent */
			s->r.marks |= MARK_CHANGED;
		else
			n = 0; /* where its header says, which is not read */
	}
	if (is_send(q->op) && !n && s->kind.type == TYPE_RAW && s->r.ret >= 0) {
		s->r.marks |= MARK_AFAULT;
		s->r.marks &= ~(u32)MARK_HAS_BASE1;
		s->r.alen = 0;
		return 1;
	}
	if (!n && is_send(q->op) && !(q->marks & MARK_AFAULT))
		return 0;
	bad = put_text_of(s, 0, UPATH_AT(0), ADDR_MAX);
	if (bad == TEXT_GONE)
		return 0;
	if (bad) {
		s->r.marks |= MARK_AFAULT;
		n = 0;
	}
	if (q->op == OP_CONNECT && n && !(s->told.how & NO_RESULT) && (!s->r.ret || s->r.ret == -EINPROGRESS)) {
		n = put_reached(s, n);
		BARRIER(n);
		if (n > ADDR_MAX)
			n = ADDR_MAX;
	}
	if (done && q->op != OP_CONNECT && q->op != OP_BIND) {
		if (ignored(s, q->mode))
			return 0;
		as_used(s, n);
	}
	s->r.alen = n;
	off = n;
	if (q->marks & MARK_HAS_BASE1) {
		s->r.clen1 = put_base(s, off, s->blob[2] == '/', AT_FDCWD, 0);
		off += s->r.clen1;
	}
	return off + 1;
}

/* The file that an operation on a descriptor is for. A request that completes holds it. */
INLINE u64 file_of(u64 req, struct request *q, bool done)
{
	if (done)
		return POINTER(io_kiocb, req, file);
	return q->file_slot ? 0 : fd_file(q->dfd[0]);
}

/* Did the request that is told open a file that has a descriptor now? */
INLINE bool opened(struct scratch *s)
{
	return is_open(told(s)->op) && !(s->told.how & NO_RESULT) && s->r.ret >= 0 && !told(s)->file_slot;
}

/* Looks at what a request opened for writing. What has no descriptor, or not any more, was written to before anybody could. */
INLINE void guard_opened(struct scratch *s)
{
	struct request *q = told(s);
	u64 file;

	if (!is_open(q->op) || s->r.ret < 0)
		return;
	file = opened(s) ? fd_file(s->r.ret) : 0;
	if (file && (file_flags(file) & O_ACCMODE || (file_mode(file) & S_IFMT) == S_IFCHR))
		guard_file(file);
	if (!opened(s) && q->privileged && q->flags & O_ACCMODE)
		raise(ALARM_UNSEEN, 0);
}

/* Puts the path of the file that a request opened; 0 if the descriptor need not be that any more: then nobody looked at the file. */
GLOBAL u32 put_opened(struct scratch *s, s32 fd)
{
	u64 file = fd_file(fd);
	u32 marks;

	if (!s)
		return 0;
	marks = s->r.marks;
	if (can_be_opened(file, s->r.flags) && !(s->told.how & ELSEWHERE)) {
		s->r.marks &= ~(u32)(MARK_HAS_U1 | MARK_HAS_BASE1);
		s->r.clen1 = put_file(s, 0, file);
		if (still_opened(s, fd, file, !!(s->r.flags & (O_LARGEFILE | O_PATH))))
			return 1;
		s->r.clen1 = s->r.i_mode = 0;
	}
	if (told(s)->privileged && s->r.flags & O_ACCMODE)
		raise(ALARM_UNSEEN, 0);
	s->r.marks = marks | MARK_FDRACE | MARK_CHANGED;
	return 0;
}

/* Puts what the record of a request that has begun is about. Returns as put_socket_call does. */
GLOBAL u64 put_told(struct scratch *s)
{
	struct request *q;
	u64 off = 0, file = 0;
	u32 first;

	if (!s)
		return 0;
	q = told(s);
	if (q->on_file || is_socket(q->op))
		file = file_of(s->told.req, q, s->told.kept);
	FORGET(file, q->since);
	if (s->told.how & NO_RESULT && file)
		s->r.marks |= MARK_CHANGED; /* by the time that it is carried out */
	if (is_socket(q->op))
		return put_socket_call(s, file);
	if (opened(s) && put_opened(s, s->r.ret)) {
		off = s->r.clen1;
	} else if (file) {
		s->r.marks &= ~(u32)(MARK_HAS_U1 | MARK_HAS_BASE1);
		off = s->r.clen1 = put_file(s, 0, file);
	} else if (!q->on_file && q->op != OP_IO_URING_OTHER) {
		off = put_name(s, 0, 0);
		if (q->marks & MARK_HAS_BASE2) {
			first = begin_second(&s->r);
			off = put_name(s, off, 1);
			end_second(&s->r, first);
		}
	}
	if (q->op == OP_SETXATTR)
		off = put_attribute(s, off);
	return off + 1;
}

/* Sends the record of a request. */
GLOBAL u32 tell(u64 req, s64 res, u32 at, u32 how, u32 of_copy)
{
	struct scratch *s = scratch_at(scratch_of(at, of_copy));
	u32 slot = slot_of(at);
	struct counters *c;
	struct request *q;
	u64 off;

	if (!s) {
		c = counters_of(slot);
		if (c)
			__sync_fetch_and_add(&c->scratch_missing, 1);
		return 1;
	}
	s->told.req = req;
	s->told.place = blank_of(at, of_copy);
	s->told.kept = !(how & NO_RESULT) && at != AT_FAILED;
	s->told.how = how;
	if (copy_told(s)) /* what took it out has counted it */
		return 1;
	q = told(s);
	if (!is_told(q->run, q->life)) /* that run has ended: another one can have its number */
		return 0;
	c = counters_in(q->run, slot);
	if (!c)
		return 1;
	if (!enter_run(q->run, slot)) { /* another run's program can complete it */
		__sync_fetch_and_add(&c->scratch_missing, 1);
		return 1;
	}
	s->given.kept = GIVEN_FILES;
	s->given.since = q->since;
	begin(&s->r, q->op, res);
	/* a kernel worker may complete it: the request's own task is the actor */
	s->r.tgid = q->tgid;
	s->r.tid = q->tid;
	s->r.cgid = q->cgid;
	s->r.source = SOURCE_IO_URING;
	s->r.flags = q->flags;
	s->r.mode = q->mode;
	s->r.resolve = q->resolve;
	s->r.marks = q->marks;
	if (how & NO_RESULT)
		s->r.marks |= MARK_NORET;
	if (how & (NO_RESULT | WAS_SILENT))
		s->r.marks |= MARK_SILENT;
	guard_opened(s);
	off = put_told(s);
	if (!off--)
		return 0;
	send_record(s, off, c, slot);
	return 0;
}

#endif
