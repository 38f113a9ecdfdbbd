/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The end of a call that opens a file. */
#ifndef RUNNER_OPENS_H
#define RUNNER_OPENS_H

#include "changes.h"
#include "guardfile.h"
#include "taken.h"

/* What openat2 was asked for. Where others have the memory, that is counted: they can change it before the kernel takes it,
 * and change it back. */
INLINE void put_how(struct scratch *s, struct counters *c, u64 ptr)
{
	struct rec *r = &s->r;
	u64 how[3] = {};
	bool fault = bpf_probe_read_user(how, sizeof(how), (void *)ptr);

	if (s->given.kept & GIVEN_SHARED)
		__sync_fetch_and_add(&c->shared_arguments, 1);
	if (s->given.kept & GIVEN_HOW) {
		if (fault || how[0] != s->given.how[0] || how[1] != s->given.how[1] || how[2] != s->given.how[2])
			r->marks |= MARK_CHANGED;
		r->flags = s->given.how[0];
		r->mode = s->given.how[1];
		r->resolve = s->given.how[2];
		return;
	}
	if (fault)
		r->marks |= MARK_UFAULT;
	if (s->given.kept & GIVEN_SHARED || exposed_late()) /* it was not in memory when the call was entered */
		r->marks |= MARK_CHANGED;
	r->flags = how[0];
	r->mode = how[1];
	r->resolve = how[2];
}

/* Was this file opened with these flags? Those that say how to find it are gone. */
INLINE bool opened_with(u64 file, u64 flags)
{
	u32 f_mode = 0;

	READ_FIELD(f_mode, file, file, f_mode);
	if (f_mode & FMODE_CREATED && !(flags & (O_CREAT | O_TMPFILE_ONLY)))
		return false;
	if (flags & O_SYNC_ONLY)
		flags |= O_DSYNC;
	return !((file_flags(file) ^ flags) & OPEN_FLAGS & ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_ASYNC | O_CLOEXEC | O_LARGEFILE));
}

/* Does the file that it opened have O_LARGEFILE for certain? The kernel adds it but for 32-bit programs; a file system that opens by
 * handle itself need not keep it (pidfs, since Linux 6.18). */
INLINE bool adds_largefile(const struct rec *r)
{
	return r->op != OP_OPEN_BY_HANDLE_AT && (!(r->marks & MARK_COMPAT) || r->flags & O_LARGEFILE);
}

INLINE u64 on_open(struct scratch *s, struct counters *c, const struct desc *d)
{
	struct rec *r = &s->r;

	r->marks |= MARK_ARGS;
	if (r->op == OP_OPENAT2) {
		put_how(s, c, s->args[2]);
	} else {
		r->flags = r->op == OP_CREAT ? CREAT_FLAGS : (u32)s->args[d->flags & 7];
		r->mode = (u16)s->args[d->mode & 7];
	}
	if (r->ret >= 0 && !(r->marks & MARK_UNPROVEN)) {
		u64 file = file_of_fd(s->task, r->ret);

		/* the program can change what it asked for, but not what it got */
		if (file && file_flags(file) & O_ACCMODE)
			guard_file(file);
		if (r->op == OP_OPENAT2 && file && !opened_with(file, r->flags))
			r->marks |= MARK_CHANGED;
		if (can_be_opened(file, r->flags)) {
			u32 marks = r->marks;

			r->clen1 = put_open_file(s, 0, file, true);
			if ((r->i_mode & S_IFMT) == S_IFCHR && !(r->flags & (O_ACCMODE | O_PATH)))
				guard_file(file);
			if (still_opened(s, r->ret, file, adds_largefile(r)))
				return r->clen1;
			r->marks = marks;
			r->clen1 = r->i_mode = 0;
		}
		/* another thread was faster: only the text says what was opened. That can be the memory of a process */
		if (r->flags & O_ACCMODE) {
			expose(run_at(SLOT_EXIT), true);
			if (has_rights()) /* or a file of the kernel, by which it can do anything */
				raise(ALARM_UNSEEN, 0);
		}
		r->marks |= MARK_FDRACE | MARK_CHANGED;
	}
	if (r->op == OP_OPEN_BY_HANDLE_AT) {
		if (r->ret >= 0 && !(r->marks & MARK_UNPROVEN))
			put_file(s, 0, 0);
		return 0;
	}
	return put_user_path(s, 0, s->args[d->path1 & 7], s->args[d->dfd1 & 7], 0);
}

#endif
