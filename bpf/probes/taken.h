/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the kernel took for a call, told at its end: what was kept (keep.h) where another thread changed it, or the call itself. */
#ifndef RUNNER_TAKEN_H
#define RUNNER_TAKEN_H

#include "keep.h"

/* A text is compared in pieces of so many bytes. */
#define TEXT_PIECE 64

/* Are two pieces the same, of which so many bytes are left? */
INLINE u32 same_words(u8 *now, u8 *then, u32 left)
{
	for (u32 i = 0; i < TEXT_PIECE; i += 8) {
		u64 differs;

		if (i >= left)
			return 1;
		differs = *(u64 *)(now + i) ^ *(u64 *)(then + i);
		if (left - i < 8) /* it ends here: a verifier that goes on from here at each word follows ten times as much */
			return !(differs & ((1ULL << (left - i) * 8) - 1));
		if (differs)
			return 0;
	}
	return 1;
}

/* Is a piece of the text in the scratch record the one of the text that was kept? */
GLOBAL u32 same_piece(struct scratch *s, u64 off, u32 at, u32 len, u32 second)
{
	struct name *n = name_of_task(second & 1, 0);
	u64 from = at;
	u8 *now, *then;

	BARRIER(off);
	BARRIER(from);
	if (!s || !n || off > BLOB_LAST || from > TEXT_MAX - TEXT_PIECE)
		return 0;
	now = &s->blob[off];
	then = n->text + from;
	now += from;
	BARRIER(now); /* the bound of the offset is lost if it is added again for each word */
	BARRIER(then);
	return same_words(now, then, len - at);
}

/* A text that is compared with what was kept of it. */
struct comparison {
	struct scratch *s;
	u64 off;
	u32 len, second, differs, pad;
};

static long compare_piece(u32 i, struct comparison *c)
{
	if (i * TEXT_PIECE >= c->len)
		return 1;
	c->differs = !same_piece(c->s, c->off, i * TEXT_PIECE, c->len, c->second);
	return c->differs;
}

/* Is the text in the scratch record the one that was kept? */
GLOBAL u32 same_text(struct scratch *s, u64 off, u32 len, u32 second)
{
	struct name *n = name_of_task(second & 1, 0);
	struct comparison c = { .s = s, .off = off, .len = len, .second = second };

	if (!n || n->text_len != len)
		return 0;
	LOOP(TEXT_MAX / TEXT_PIECE, compare_piece, &c);
	return !c.differs;
}

/* Appends a name's text: the one that was kept, where it is another one now. Returns its length. */
GLOBAL u64 put_text(struct scratch *s, u64 off, u64 ptr, u32 second)
{
	struct name *n;
	u32 faults, len;
	u64 got;

	BARRIER(off);
	if (!s || off > BLOB_LAST)
		return 0;
	faults = s->r.marks & MARK_UFAULT;
	got = put_user_str(s, off, ptr);
	if (s->given.kept & GIVEN_UNREAD << second)
		s->r.marks |= MARK_CHANGED;
	if (!(s->given.kept & GIVEN_TEXT << second)) {
		if (s->given.kept & GIVEN_SHARED && !(s->given.kept & GIVEN_UNREAD << second) && (is_forced(run_at(SLOT_EXIT)) || others_write_rest(ptr, got)))
			s->r.marks |= MARK_CHANGED;
		return got;
	}
	if (same_text(s, off, got, second))
		return got;
	n = name_of_task(second & 1, 0);
	if (!n)
		return got;
	len = n->text_len;
	BARRIER(len);
	if (len >= TEXT_MAX || bpf_probe_read_kernel(&s->blob[off], len, n->text))
		return got;
	s->r.marks = (s->r.marks & ~(u32)MARK_UFAULT) | faults;
	if (s->given.kept & GIVEN_SHARED || exposed_late())
		s->r.marks |= MARK_CHANGED;
	return len;
}

/* Appends a place that was kept. Returns the bytes written. */
GLOBAL u64 put_place(struct scratch *s, u64 off, u32 second)
{
	struct name *n = name_of_task(second & 1, 0);
	u32 len;

	BARRIER(off);
	if (!s || !n || off > BLOB_LAST)
		return 0;
	len = n->place_len;
	BARRIER(len);
	if (len > PLACE_MAX || bpf_probe_read_kernel(&s->blob[off], len, n->place))
		return 0;
	s->r.marks |= n->marks;
	s->r.i_mode = n->i_mode;
	return len;
}

/* Did the place that a name starts from move, of which only the way up was kept, and which was just written to the scratch record? */
INLINE bool other_way(struct scratch *s, u32 absolute, u32 second)
{
	struct name *n;

	if (!(s->given.kept & GIVEN_WAY << second))
		return false;
	n = name_of_task(second & 1, 0);
	if (!n || n->absolute != absolute) /* a text that was not in memory yet can be an absolute one */
		return !n || !absolute || s->given.kept & GIVEN_TEXT << second;
	return n->changes != s->walk.changes || n->way != s->walk.way;
}

/* Appends the place that a name starts from. Returns the bytes written and one; 0 if it is another one now than when the call
 * was entered, for then nobody knows which of them the kernel took, and if there is none. */
GLOBAL u64 put_start(struct scratch *s, u64 off, s32 dfd, u32 absolute, u32 second)
{
	struct path_pair now, *then = NULL;
	bool changed = false;
	struct name *n;
	u64 len;

	if (!s)
		return 0;
	if (s->given.kept & GIVEN_PLACE << second) {
		n = name_of_task(second & 1, 0);
		if (n && n->absolute == absolute) {
			if (!absolute && dfd != AT_FDCWD)
				changed = descriptor_changed(s, dfd);
			else if (s->given.kept & GIVEN_START)
				changed = start_changed(s);
			if (changed)
				s->r.marks |= MARK_CHANGED;
			return put_place(s, off, second) + 1;
		}
		if (!absolute || s->given.kept & GIVEN_TEXT << second) {
			s->r.marks |= MARK_CHANGED;
			return 0;
		}
	}
	base_path(absolute, dfd, &now);
	if (!absolute && dfd != AT_FDCWD) {
		if (s->given.kept & GIVEN_DIR << second)
			then = &s->given.dir[second & 1];
		changed = descriptor_changed(s, dfd);
	} else if (s->given.kept & GIVEN_START) {
		then = absolute ? &s->given.root : &s->given.pwd;
		changed = start_changed(s);
	}
	if (changed || (then && !same_place(then, &now))) {
		s->r.marks |= MARK_CHANGED;
		return 0;
	}
	if (starts_nowhere(&now, absolute, dfd))
		return 0;
	len = put_short_path(s, off, now.mnt, now.dentry);
	if (!len)
		len = put_path(s, off, now.mnt, now.dentry);
	if (other_way(s, absolute, second)) {
		s->r.marks |= MARK_CHANGED;
		return 0;
	}
	return len + 1;
}

/* Puts a user path and the directory it starts from, as the record's first or
 * second name. Returns the new offset. */
GLOBAL u64 put_user_path(struct scratch *s, u64 off, u64 ptr, s32 dfd, u32 second)
{
	u32 absolute;
	u64 n, c;

	if (!s)
		return off;
	n = put_text(s, off, ptr, second);
	BARRIER(off);
	if (off > BLOB_LAST)
		return off;
	absolute = n && s->blob[off] == '/' && !(s->r.resolve & RESOLVE_IN_ROOT);
	mark_chroot(s, off, n);
	c = put_start(s, off + n, dfd, absolute, second);
	if (second) {
		s->r.ulen2 = n;
		s->r.marks |= MARK_HAS_U2;
		if (c) {
			s->r.clen2 = c - 1;
			s->r.marks |= MARK_HAS_BASE2;
		}
	} else {
		s->r.ulen1 = n;
		s->r.marks |= MARK_HAS_U1;
		if (c) {
			s->r.clen1 = c - 1;
			s->r.marks |= MARK_HAS_BASE1;
		}
	}
	return off + n + (c ? c - 1 : 0);
}

/* Puts the file of a descriptor that a call is about. */
GLOBAL u64 put_descriptor(struct scratch *s, s32 fd)
{
	u64 file = fd_file(fd);
	struct path_pair now;
	bool changed = false;
	struct given *g;

	if (!s)
		return 0;
	g = &s->given;
	if (g->kept & (GIVEN_FILE | GIVEN_DIR)) {
		file_path(file, &now);
		changed = (g->kept & GIVEN_FILE && file != g->file) || !same_place(&now, &g->dir[0]) ||
			  descriptor_changed(s, fd);
	}
	if (changed)
		s->r.marks |= MARK_CHANGED;
	if (g->kept & GIVEN_PLACE && (changed || !(g->kept & GIVEN_FILE))) {
		s->r.clen1 = put_place(s, 0, 0);
		s->r.marks |= MARK_HAS_PATH;
	} else if (file && !changed) {
		s->r.clen1 = put_file(s, 0, file);
	}
	return s->r.clen1;
}

#endif
