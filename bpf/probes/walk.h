/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The path walk: from a dentry and its mount up to the top of the mount tree,
 * as the kernel has them. bpf_d_path is not allowed in tracepoint programs. */
#ifndef RUNNER_WALK_H
#define RUNNER_WALK_H

#include "loop.h"
#include "maps.h"
#include "memory.h"
#include "way.h"

/* A step of a walk. Its state is in the scratch record, of which a verifier knows nothing: on the stack it
 * would follow each way that a step can end as one of its own. */
INLINE long step(struct scratch *s)
{
	struct walk *w;
	struct links l;
	u64 off, n;

	if (!s)
		return 1;
	w = &s->walk;
	if (w->dentry == w->root) {
		u64 at = w->mnt - OFFSET(struct mount, mnt);
		struct mount_links m;

		read_mount(&m, at);
		if (!m.parent || !m.point)
			goto fault;
		note_mount(&w->way, at);
		if (m.parent == at) {
			if (is_here(m.ns)) {
				if (!is_end(m.ns, at))
					w->changes |= BEING_CHANGED;
				goto done;
			}
			w->marks |= MARK_DETACHED; /* then the place in the file system says more */
			w->root = 0;
			return 0;
		}
		w->dentry = m.point;
		w->mnt = m.parent + OFFSET(struct mount, mnt);
		w->root = mount_root(w->mnt);
		w->crossed = 1;
		if (!w->root)
			goto fault;
		return 0;
	}
	note_step(&w->changes, &w->way, w->dentry);
	read_links(&l, w->dentry);
	if (!l.parent || !l.name || l.len > NAME_MAX) /* only FUSE has longer names: the record has no room for them */
		goto fault;
	off = w->off;
	n = l.len & 255;
	BARRIER(off);
	if (off + n >= w->end || off > BLOB_LAST) {
		w->marks |= MARK_PTRUNC;
		goto done;
	}
	s->blob[off] = n;
	if (bpf_probe_read_kernel(&s->blob[off + 1], n & 255, (void *)l.name))
		goto fault;
	w->off = off + 1 + n;
	if (l.parent != w->dentry) {
		w->dentry = l.parent;
		return 0;
	}
	if (!(w->marks & MARK_DETACHED)) {
		w->marks |= MARK_DISCONN;
		if (w->crossed) /* the two halves of where a mount is were read while that changed */
			w->changes |= BEING_CHANGED;
	}
	if (w->marks & MARK_DETACHED || (n == 1 && s->blob[off + 1] == '/')) { /* an empty component ends the path: that is no name */
		s->blob[off] = 0;
		w->off = off + 1;
	}
	goto done;
fault:
	w->marks |= MARK_PFAULT;
done:
	w->done = 1;
	return 1;
}

static long walk_step(u32 i, struct scratch **s)
{
	return step(*s);
}

/* Most names are short: they are in the dentry itself, and can be read by words, which costs a fraction of a helper. */
#define SHORT_NAME 39
#define SHORT_WORDS 5
#define SHORT_OFFSET 128 /* a name there is in the dentry, and the words are, too */
#define NAMES_AT_ONCE 4
#define SHORT_STEPS 32

/* What a walk keeps in memory here is nothing that a verifier has to follow through each way of each step. */
INLINE bool put_short(struct scratch *s, volatile struct walk *w)
{
	u64 at = w->dentry, off = w->off, changes, way;
	struct links l;
	u8 *to;

	changes = w->changes;
	way = w->way;
	note_step(&changes, &way, at);
	read_links(&l, at);
	BARRIER(off);
	if (at == w->root || !l.parent || l.parent == at || l.name - at >= SHORT_OFFSET || l.len > SHORT_NAME ||
	    off + l.len >= w->end || off > BLOB_LAST)
		return false;
	to = &s->blob[off];
	*to++ = l.len;
	for (int i = 0; i < 2; i++) /* what is beyond the name is overwritten by the next one, or not sent */
		((u64 *)to)[i] = word(l.name + 8 * i);
	if (l.len > 16)
		for (int i = 2; i < SHORT_WORDS; i++)
			((u64 *)to)[i] = word(l.name + 8 * i);
	w->off = off + 1 + l.len;
	w->dentry = l.parent;
	w->changes = changes;
	w->way = way;
	return true;
}

/* A walk's next steps, if they are plain ones. Returns 0 if the next one is for step. */
GLOBAL u32 put_short_names(struct scratch *s)
{
	struct mount_links m;
	struct walk *w;
	u64 at;

	if (!s || !CAN_CAST) /* by helpers, more of them cost more than those of step */
		return 0;
	w = &s->walk;
	for (int i = 0; i < NAMES_AT_ONCE; i++) {
		if (put_short(s, w))
			continue;
		if (w->dentry != w->root)
			return 0;
		at = w->mnt - OFFSET(struct mount, mnt);
		read_mount(&m, at);
		note_mount(&w->way, at);
		if (m.parent == at)
			return w->done = m.point && is_here(m.ns) && is_end(m.ns, at);
		at = m.parent && m.point ? mount_root(m.parent + OFFSET(struct mount, mnt)) : 0;
		if (!at)
			return 0;
		w->dentry = m.point;
		w->mnt = m.parent + OFFSET(struct mount, mnt);
		w->root = at;
		w->crossed = 1;
		return 1;
	}
	return 1;
}

#define WALK_STEPS 4200 /* pass every path that fits */
#define PIECE 64

/* One step, for kernels that have no bpf_loop. */
GLOBAL u32 walk_once(struct scratch *s)
{
	return step(s);
}

/* A piece of a walk. Returns 0 if there is more. */
GLOBAL u32 walk_piece(struct scratch *s)
{
	for (int i = 0; i < PIECE; i++)
		if (walk_once(s))
			return 1;
	return 0;
}

/* Appends the components of a path at blob offset off of the scratch record.
 * Returns the bytes written; what went wrong is added to the record's marks. */
GLOBAL u64 put_path(struct scratch *s, u64 off, u64 mnt, u64 dentry)
{
	struct scratch *at = s; /* of which a callback is given the address */
	struct walk *w;

	if (!s)
		return 0;
	w = &s->walk;
	w->root = dentry && mnt ? mount_root(mnt) : 0;
	if (!w->root) {
		s->r.marks |= MARK_PFAULT;
		return 0;
	}
	w->dentry = dentry;
	w->mnt = mnt;
	w->off = off;
	w->end = off + COMP_MAX;
	w->marks = w->done = w->crossed = 0;
	w->changes = w->way = 0;
	if (no_loop) {
		for (int i = 0; i < WALK_STEPS / PIECE + 1; i++)
			if (walk_piece(s))
				break;
	} else {
		bpf_loop(WALK_STEPS, walk_step, &at, 0);
	}
	s->r.marks |= w->marks | (w->done ? 0 : MARK_PTRUNC);
	if (w->marks & MARK_PTRUNC || !w->done) /* it has more names than are looked at again */
		return w->off - off;
	begin_again(s, mnt, dentry);
	go_again(s, WAY_STEPS);
	if (!s->again.done) { /* it goes on, and nobody knows */
		s->r.marks |= MARK_CHANGED;
	} else if (!is_same_way(s)) {
		s->r.marks |= MARK_PFAULT | MARK_CHANGED;
		return 0;
	}
	return w->off - off;
}

/* The same for a path that is not long and has only short names, as most have; 0 for others, which put_path is for. Only
 * programs that run often have it: each start waits until the verifier has followed it in each program. */
GLOBAL u64 put_short_path(struct scratch *s, u64 off, u64 mnt, u64 dentry)
{
	struct walk *w;

	if (!s || !CAN_CAST || !mnt || !dentry)
		return 0;
	w = &s->walk;
	w->root = mount_root(mnt);
	w->dentry = dentry;
	w->mnt = mnt;
	w->off = off;
	w->end = off + COMP_MAX;
	w->marks = w->done = w->crossed = 0;
	w->changes = w->way = 0;
	for (int i = 0; i < SHORT_STEPS / NAMES_AT_ONCE && w->root && !w->done; i++)
		if (!put_short_names(s))
			break;
	if (!w->done)
		return 0;
	begin_again(s, mnt, dentry);
	go_again(s, SHORT_STEPS); /* it has at most as many names */
	return is_same_way(s) ? w->off - off : 0;
}

INLINE bool same_place(struct path_pair *a, struct path_pair *b)
{
	return a->mnt == b->mnt && a->dentry == b->dentry;
}

INLINE u64 file_of_table(u64 files, s32 fd)
{
	u64 fdt = POINTER(files_struct, files, fdt);
	u64 slots = POINTER(fdtable, fdt, fd);
	u32 n = 0;

	READ_FIELD(n, fdtable, fdt, max_fds);
	if (fd < 0 || (u32)fd >= n || !slots)
		return 0;
	return word(slots + 8 * (u64)(u32)fd);
}

INLINE u64 file_of_fd(u64 task, s32 fd)
{
	return file_of_table(POINTER(task_struct, task, files), fd);
}

GLOBAL u64 fd_file(s32 fd)
{
	return file_of_fd(bpf_get_current_task(), fd);
}

/* Type and permissions of the file's inode. */
INLINE u16 file_mode(u64 file)
{
	u64 inode = POINTER(file, file, f_inode);
	u16 mode = 0;

	READ_FIELD(mode, inode, inode, i_mode);
	return mode;
}

INLINE u64 magic_of(u64 inode)
{
	return POINTER(super_block, POINTER(inode, inode, i_sb), s_magic);
}

INLINE u32 file_flags(u64 file)
{
	u32 flags = 0;

	READ_FIELD(flags, file, file, f_flags);
	return flags;
}

/* Does nothing but a descriptor hold this file? */
INLINE bool held_once(u64 file)
{
	if (EXISTS(struct file___ref, f_ref))
		return !POINTER(file___ref, file, f_ref);
	return POINTER(file___count, file, f_count) == 1;
}

/* Can it be opened with these flags? */
INLINE bool fits(u64 file, u64 flags)
{
	return flags & O_PATH || !((file_flags(file) ^ flags) & O_ACCMODE);
}

INLINE void file_path(u64 file, struct path_pair *p)
{
	p->mnt = p->dentry = 0;
	if (!file)
		return;
	p->mnt = POINTER(file, file, f_path.mnt);
	p->dentry = POINTER(file, file, f_path.dentry);
}

/* The directory from which a user path starts: process root for an absolute one,
 * else the working directory or the given descriptor. */
INLINE void base_path(bool absolute, s32 dfd, struct path_pair *p)
{
	u64 fs;

	p->mnt = p->dentry = 0;
	if (!absolute && dfd != AT_FDCWD) {
		file_path(fd_file(dfd), p);
		return;
	}
	fs = POINTER(task_struct, bpf_get_current_task(), fs);
	fs += absolute ? OFFSET(struct fs_struct, root) : OFFSET(struct fs_struct, pwd);
	p->mnt = POINTER(path, fs, mnt);
	p->dentry = POINTER(path, fs, dentry);
}

/* Is there no such descriptor? Nothing is unreadable then: a call's other name keeps the directory that it starts from. */
INLINE bool starts_nowhere(struct path_pair *p, bool absolute, s32 dfd)
{
	return !absolute && dfd != AT_FDCWD && !p->dentry;
}

/* MARK_DELETED if the leaf of a resolved path no longer has its name. */
INLINE u32 leaf_marks(u64 dentry)
{
	if (POINTER(dentry, dentry, d_hash.pprev) || POINTER(dentry, dentry, d_parent) == dentry)
		return 0;
	return MARK_DELETED;
}

/* Appends a user string, without its NUL. Returns its length. */
GLOBAL u64 put_user_str(struct scratch *s, u64 off, u64 ptr)
{
	u8 last = 0;
	s64 n;

	BARRIER(off);
	if (!s || off > BLOB_LAST)
		return 0;
	n = bpf_probe_read_user_str(&s->blob[off], UPATH_MAX, (void *)ptr);
	if (n < 0) {
		s->r.marks |= MARK_UFAULT;
		return 0;
	}
	if (n == 0) /* an empty text on Linux 6.12; 6.18 counts its 0 byte, as that of any text */
		return 0;
	if (n == UPATH_MAX) { /* as long as one may be, or cut */
		bpf_probe_read_user(&last, sizeof(last), (void *)(ptr + UPATH_MAX - 1));
		if (last)
			s->r.marks |= MARK_UTRUNC;
	}
	return n - 1;
}

/* Appends the path of an open file and sets type and marks.
 * Returns the bytes written. */
INLINE u64 put_open_file(struct scratch *s, u64 off, u64 file, bool often)
{
	struct path_pair p;
	u64 n;

	file_path(file, &p);
	s->r.i_mode = file_mode(file);
	n = often ? put_short_path(s, off, p.mnt, p.dentry) : 0;
	if (!n)
		n = put_path(s, off, p.mnt, p.dentry);
	s->r.marks |= MARK_HAS_PATH | leaf_marks(p.dentry);
	if (s->r.marks & MARK_DISCONN) {
		s->r.marks |= MARK_UNNAMED;
		if (magic_of(POINTER(file, file, f_inode)) == NSFS_MAGIC)
			s->r.i_mode |= S_IFMT; /* no file has this type */
	}
	return n;
}

/* The same, also if there is none. */
GLOBAL u64 put_file(struct scratch *s, u64 off, u64 file)
{
	if (!s)
		return 0;
	if (file)
		return put_open_file(s, off, file, false);
	s->r.marks |= MARK_HAS_PATH | MARK_PFAULT;
	return 0;
}

/* Is the place in the scratch record's walk the top of its mount tree? Returns 1 then, 0 if it is below, and
 * goes on to where its mount is, which 2 says. */
GLOBAL u32 is_top(struct scratch *s)
{
	struct mount_links m;
	struct walk *w;
	u64 at;

	if (!s)
		return 0;
	w = &s->walk;
	at = w->mnt - OFFSET(struct mount, mnt);
	if (!w->mnt || w->dentry != mount_root(w->mnt))
		return 0;
	read_mount(&m, at);
	if (m.parent == at)
		return 1;
	w->dentry = m.point;
	w->mnt = m.parent + OFFSET(struct mount, mnt);
	return 2;
}

/* Whether the process root lies below the top of its mount tree. */
GLOBAL u32 in_chroot(struct scratch *s)
{
	struct path_pair p;
	u32 top = 2;

	if (!s)
		return 1;
	base_path(true, 0, &p);
	s->walk.mnt = p.mnt;
	s->walk.dentry = p.dentry;
	for (int i = 0; i < 8 && top == 2; i++)
		top = is_top(s);
	return top != 1;
}

/* A path that begins with .. can be stopped by the process root. */
INLINE void mark_chroot(struct scratch *s, u64 off, u64 n)
{
	if (n > 1 && off <= BLOB_LAST && s->blob[off] == '.' && in_chroot(s))
		s->r.marks |= MARK_CHROOT;
}

#endif
