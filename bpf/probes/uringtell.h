/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The record of a request of io_uring, in parts that a verifier checks once. */
#ifndef RUNNER_URINGTELL_H
#define RUNNER_URINGTELL_H

#include "addr.h"
#include "changes.h"
#include "guard.h"
#include "uringrequest.h"

/* How a request is recorded. */
enum how {
	NO_RESULT = 1 << 0,  /* it has none yet, and perhaps never will */
	ELSEWHERE = 1 << 1,  /* by a task with other descriptors or another working directory */
	WAS_SILENT = 1 << 2, /* for the second time: it had its record already */
};

/* The request that a scratch record is about. */
INLINE struct request *told(struct scratch *s)
{
	u32 place = s->told.place;
	u64 req = s->told.req;

	return s->told.kept ? bpf_map_lookup_elem(&requests, &req) : bpf_map_lookup_elem(&blank, &place);
}

/* Was the place that a name starts from changed after the submission? */
INLINE bool start_changed(struct scratch *s, bool absolute, s32 dfd)
{
	if (!absolute && s->told.how & ELSEWHERE)
		return true;
	if (!absolute && dfd != AT_FDCWD)
		return descriptor_changed(&s->given, dfd);
	return table_changed(POINTER(task_struct, bpf_get_current_task(), fs), CHANGES_START, s->given.since);
}

/* Puts the directory that a name starts from, as it was kept. If the task now has another one
 * there, or changed it and took that back, then nobody can say which of them the kernel used.
 * Returns the bytes written. */
GLOBAL u64 put_base(u32 key, u64 off, u32 absolute, s32 dfd, u32 second)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct path_pair now, *from;
	struct request *q;
	u64 n;

	if (!s)
		return 0;
	q = told(s);
	if (!q) {
		s->r.marks |= MARK_PFAULT;
		return 0;
	}
	base_path(absolute, dfd, &now);
	from = second ? &q->from2 : &q->from;
	if (now.mnt != from->mnt || now.dentry != from->dentry || start_changed(s, absolute, dfd))
		s->r.marks |= MARK_CHANGED;
	if (starts_nowhere(from, absolute, dfd)) {
		s->r.marks &= ~(u32)(second ? MARK_HAS_BASE2 : MARK_HAS_BASE1);
		return 0;
	}
	BARRIER(off);
	if (off > BLOB_LAST)
		return 0;
	n = second ? q->clen2 : q->clen;
	if (n > BASE_MAX)
		return put_path(key, off, now.mnt, now.dentry);
	BARRIER(n);
	if (n > BASE_MAX || bpf_probe_read_kernel(&s->blob[off], n, second ? q->base2 : q->base)) {
		s->r.marks |= MARK_PFAULT;
		return 0;
	}
	return n;
}

/* Puts a text that was kept. Returns its length. */
INLINE u64 put_kept(struct scratch *s, u64 off, u8 *text, u64 n)
{
	if (n > UPATH_MAX - 1)
		n = UPATH_MAX - 1;
	BARRIER(n);
	n &= UPATH_MAX - 1;
	return bpf_probe_read_kernel(&s->blob[off], n, text) ? 0 : n;
}

/* Puts the name of an attribute, which is no path. Returns the new offset. */
GLOBAL u64 put_attribute(u32 key, u64 off)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct request *q;

	BARRIER(off);
	if (!s || off > BLOB_LAST)
		return off;
	q = told(s);
	if (!q) {
		s->r.marks |= MARK_UFAULT;
		return off;
	}
	s->r.ulen2 = put_kept(s, off, q->upath2, q->ulen2);
	return off + s->r.ulen2;
}

/* Puts a name and the directory that it starts from. Returns the new offset. */
GLOBAL u64 put_name(u32 key, u64 off, u32 second)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct request *q;
	u8 *text;
	u64 n, c;

	BARRIER(off);
	if (!s || off > BLOB_LAST)
		return off;
	q = told(s);
	if (!q) { /* taken out meanwhile: nobody knows the name any more */
		s->r.marks |= MARK_UFAULT;
		return off;
	}
	text = second ? q->upath2 : q->upath;
	n = put_kept(s, off, text, second ? q->ulen2 : q->ulen);
	c = put_base(key, off + n, text[0] == '/', second ? q->dfd2 : q->dfd, second);
	if (second) {
		s->r.ulen2 = n;
		s->r.clen2 = c;
	} else {
		s->r.ulen1 = n;
		s->r.clen1 = c;
	}
	return off + n + c;
}

/* Sends the record of a socket call, which has begun. */
GLOBAL u32 tell_socket(u32 key, u64 file, u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct counters *c = counters_of(slot);
	struct request *q;
	bool path, done;
	u64 n, off;

	if (!s || !c)
		return 1;
	q = told(s);
	if (!q)
		return 1;
	path = q->marks & MARK_HAS_BASE1;
	done = s->r.ret >= 0 && !(s->told.how & NO_RESULT);
	n = q->ulen;
	set_kind(key, file);
	s->r.aux2 = cookie_of(&s->kind);
	if (q->op == OP_LISTEN || (q->op == OP_BIND && done && s->kind.sk)) {
		s->r.marks &= ~(u32)MARK_HAS_BASE1;
		emit_addr(s, key, put_socket(key, s->kind.sk, 0), c, slot);
		return 0;
	}
	if (n > ADDR_MAX)
		n = ADDR_MAX;
	BARRIER(n);
	off = n;
	if (bpf_probe_read_kernel(&s->blob[0], ADDR_MAX, q->upath))
		off = n = 0;
	if (done && q->op != OP_CONNECT && q->op != OP_BIND) {
		if (ignored(key, q->mode))
			return 0;
		as_used(key, n);
	}
	s->r.alen = n;
	if (path) {
		s->r.clen1 = put_base(key, off, s->blob[2] == '/', AT_FDCWD, 0);
		off += s->r.clen1;
	}
	BARRIER(off);
	if (off > BLOB_LAST)
		off = BLOB_LAST;
	emit(&s->r, REC_SIZE + off, c, slot);
	return 0;
}

/* The file that an operation on a descriptor is for. A request that completes holds it. */
INLINE u64 file_of(u64 req, struct request *q, bool done)
{
	if (done)
		return POINTER(io_kiocb, req, file);
	return q->file_slot ? 0 : fd_file(q->dfd);
}

/* Puts the path of the file that a request opened; false if the descriptor need not be that any more. */
INLINE bool put_opened(struct scratch *s, u32 key, s32 fd)
{
	u32 marks = s->r.marks;
	u64 file = fd_file(fd);

	if (file && file_flags(file) & O_ACCMODE)
		guard_file(file);
	if (just_opened(file, s->r.flags) && !(s->told.how & ELSEWHERE)) {
		s->r.marks &= ~(u32)(MARK_HAS_U1 | MARK_HAS_BASE1);
		s->r.clen1 = put_file(key, 0, file);
		if (still_opened(&s->given, fd, file, s->r.flags & (O_LARGEFILE | O_PATH)))
			return true;
		s->r.clen1 = s->r.i_mode = 0;
	}
	s->r.marks = marks | MARK_FDRACE | MARK_CHANGED;
	return false;
}

/* Sends the record of a request. */
GLOBAL u32 tell(u64 req, s64 res, u32 at, u32 how, u32 of_copy)
{
	u32 key = scratch_of(at, of_copy), slot = slot_of(at);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct counters *c;
	struct request *q;
	u64 off = 0, file = 0;

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
	q = told(s);
	if (!q) /* what took it out has counted it */
		return 1;
	if (!is_told(q->run, q->life)) /* that run has ended: another one can have its number */
		return 0;
	enter_run(q->run, slot); /* another run's program can complete it */
	c = counters_of(slot);
	if (!c)
		return 1;
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
	if (q->on_file || is_socket(q->op))
		file = file_of(req, q, s->told.kept);
	if (how & NO_RESULT && file)
		s->r.marks |= MARK_CHANGED; /* by the time that it is carried out */
	if (is_socket(q->op)) {
		tell_socket(key, file, slot);
		return 0;
	}
	if (is_open(q->op) && !(how & NO_RESULT) && res >= 0 && !q->file_slot && put_opened(s, key, res)) {
		off = s->r.clen1;
	} else if (file) {
		s->r.marks &= ~(u32)(MARK_HAS_U1 | MARK_HAS_BASE1);
		off = s->r.clen1 = put_file(key, 0, file);
	} else if (!q->on_file && q->op != OP_IO_URING_OTHER) {
		off = put_name(key, 0, 0);
		if (q->marks & MARK_HAS_BASE2)
			off = put_name(key, off, 1);
	}
	if (q->op == OP_SETXATTR)
		off = put_attribute(key, off);
	BARRIER(off);
	if (off > BLOB_LAST)
		off = BLOB_LAST;
	emit(&s->r, REC_SIZE + off, c, slot);
	return 0;
}

#endif
