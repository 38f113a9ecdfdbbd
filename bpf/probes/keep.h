/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Keeps what a call was given when it is entered, and compares it when it ends. The kernel takes it soon after the
 * entry, and can sleep long after that. Between the two another thread can change a text, a descriptor or the working
 * directory, and the call itself can move the directory that its name starts from. */
#ifndef RUNNER_KEEP_H
#define RUNNER_KEEP_H

#include "marks.h"
#include "walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, struct names);
} names SEC(".maps");

INLINE struct names *names_of_task(u64 flags)
{
	return bpf_task_storage_get(&names, bpf_get_current_task_btf(), 0, flags);
}

/* The arguments of a call, and in the places CWD and NO what stands there. */
INLINE void read_args(struct pt_regs *regs, bool compat32, u64 *a)
{
#if defined(__TARGET_ARCH_x86)
	if (compat32) {
		a[0] = (u32)regs->bx;
		a[1] = (u32)regs->cx;
		a[2] = (u32)regs->dx;
		a[3] = (u32)regs->si;
		a[4] = (u32)regs->di;
		a[5] = (u32)regs->bp;
	} else {
		a[0] = regs->di;
		a[1] = regs->si;
		a[2] = regs->dx;
		a[3] = regs->r10;
		a[4] = regs->r8;
		a[5] = regs->r9;
	}
#else
	a[0] = regs->orig_x0; /* x0 holds the return value by now */
	a[1] = regs->regs[1];
	a[2] = regs->regs[2];
	a[3] = regs->regs[3];
	a[4] = regs->regs[4];
	a[5] = regs->regs[5];
	if (compat32)
		for (int i = 0; i < 6; i++)
			a[i] = (u32)a[i];
#endif
	a[6] = (u64)AT_FDCWD;
	a[7] = 0;
}

/* What a task shares with others. */
enum { SHARES_FS = 1 << 0, SHARES_FILES = 1 << 1, SHARES_MEMORY = 1 << 2 };

INLINE u32 shares(void)
{
	u64 task = bpf_get_current_task();
	s32 fs = 0, files = 0, memory = 0;

	READ_FIELD(fs, fs_struct, POINTER(task_struct, task, fs), users);
	READ_FIELD(files, files_struct, POINTER(task_struct, task, files), count.counter);
	READ_FIELD(memory, mm_struct, POINTER(task_struct, task, mm), mm_users.counter);
	return (fs > 1 ? SHARES_FS : 0) | (files > 1 ? SHARES_FILES : 0) | (memory > 1 ? SHARES_MEMORY : 0);
}

/* What threads that share a table of descriptors did to it. Two can have the same entry: then a call can be in doubt without
 * reason. An entry of the first part is for one descriptor, one of the second for all descriptors of a table, one of the third
 * for the place where names start. */
#define CHANGES 8192
#define CHANGES_OF_TABLES 1024

struct change {
	u64 at;	    /* when it was last changed */
	u64 taken;  /* when that last took away what a call in progress could have put there */
	u64 file;   /* what a call that has ended put there */
	u64 opened; /* when */
	u64 owner;  /* for which process: when it was started */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CHANGES + 2 * CHANGES_OF_TABLES);
	__type(key, u32);
	__type(value, struct change);
} changes SEC(".maps");

INLINE u64 hash_of(u64 table)
{
	return ((table >> 6) * 0x9e3779b97f4a7c15) >> 40;
}

INLINE struct change *change_of(u64 table, u32 fd)
{
	u32 key = (hash_of(table) + fd) & (CHANGES - 1);

	return bpf_map_lookup_elem(&changes, &key);
}

INLINE struct change *change_of_table(u64 table, u32 what)
{
	u32 key = CHANGES + (what == CHANGES_START ? CHANGES_OF_TABLES : 0) + (hash_of(table) & (CHANGES_OF_TABLES - 1));

	return bpf_map_lookup_elem(&changes, &key);
}

INLINE u64 descriptors(void)
{
	return POINTER(task_struct, bpf_get_current_task(), files);
}

INLINE bool table_changed(u64 table, u32 what, u64 since)
{
	struct change *c = change_of_table(table, what);

	return c && c->at >= since;
}

INLINE bool descriptor_changed(struct given *g, s32 fd)
{
	u64 files = descriptors();
	struct change *c;

	if (!(g->kept & GIVEN_FILES))
		return false;
	c = change_of(files, fd);
	return (c && c->at >= g->since) || table_changed(files, CHANGES_ALL, g->since);
}

/* When the process was started: no other one has this number and the same table. */
INLINE u64 owner_of_table(void)
{
	return bpf_get_current_task_btf()->group_leader->start_boottime;
}

/* A call that opened a file ends, and nothing says that its descriptor has another one by now. Was it taken away in the
 * meantime? From here on, a thread that closes it closes what it was told of. Whatever was closed can have been a file
 * without O_LARGEFILE, if that is what the call opened. */
INLINE bool still_opened(struct given *g, s32 fd, u64 file, bool largefile)
{
	u64 files = descriptors();
	struct change *c;

	if (!(g->kept & GIVEN_FILES))
		return true;
	c = change_of(files, fd);
	if (!c)
		return true;
	c->owner = owner_of_table();
	c->opened = bpf_ktime_get_ns();
	__sync_lock_test_and_set(&c->file, file);
	if ((largefile ? c->taken : c->at) < g->since && !table_changed(files, CHANGES_ALL, g->since))
		return true;
	c->file = 0;
	return false;
}

/* Is what a descriptor has known not to be from a call in progress? Files that are opened by a name have O_LARGEFILE, or O_PATH:
 * the kernel adds it, but for 32-bit programs. Pipes, sockets and what else has no name have neither. Another file is known if
 * the call that opened it has ended; of several threads that close it, only one closes a known one. */
INLINE bool is_settled(struct change *c, u64 files, s32 fd)
{
	u64 file = fd_file(fd);

	if (!file)
		return false;
	if (!(file_flags(file) & (O_LARGEFILE | O_PATH)))
		return true;
	return c->owner == owner_of_table() && !table_changed(files, CHANGES_ALL, c->opened) &&
	       __sync_val_compare_and_swap(&c->file, file, 0) == file;
}

/* A call that changes what other threads' calls are given. It is told when it begins. */
INLINE void note_change(u32 what, u64 first, u64 second)
{
	s32 users = 0, fd = what == CHANGES_FIRST ? first : second;
	struct change *c;
	u64 table, now;

	if (what == CHANGES_START) {
		table = POINTER(task_struct, bpf_get_current_task(), fs);
		READ_FIELD(users, fs_struct, table, users);
	} else {
		table = descriptors();
		READ_FIELD(users, files_struct, table, count.counter);
	}
	if (users < 2)
		return;
	now = bpf_ktime_get_ns();
	if (what == CHANGES_START || what == CHANGES_ALL) {
		c = change_of_table(table, what);
		if (c)
			c->at = now;
		return;
	}
	c = change_of(table, fd);
	if (!c)
		return;
	c->at = now;
	if (!is_settled(c, table, fd))
		c->taken = now;
}

/* Calls that can move the places that their own names start from. */
INLINE bool moves_places(u32 op)
{
	return op == OP_RENAME || op == OP_MOUNT || op == OP_UMOUNT || op == OP_MOVE_MOUNT || op == OP_PIVOT_ROOT;
}

/* Calls that are kept of every task. A truncated file can be the memory that the text is in. */
INLINE bool always_kept(u32 op)
{
	return moves_places(op) || op == OP_TRUNCATE;
}

INLINE u32 keep_text(struct names *n, u64 ptr, u32 second)
{
	s64 len = bpf_probe_read_user_str(n->text[second], TEXT_MAX, (void *)ptr);

	n->text_len[second] = 0;
	if (len < 0 || len >= TEXT_MAX)
		return 0;
	if (len)
		n->text_len[second] = len - 1;
	return GIVEN_TEXT << second;
}

/* Keeps the path that was just written to the scratch record. */
INLINE u32 keep_place(struct names *n, struct scratch *s, u64 len, u32 second)
{
	BARRIER(len);
	if (len > PLACE_MAX || s->r.marks & (MARK_PFAULT | MARK_PTRUNC) || bpf_probe_read_kernel(n->place[second], len, s->blob))
		return 0;
	n->place_len[second] = len;
	n->marks[second] = s->r.marks;
	return GIVEN_PLACE << second;
}

/* Keeps what one name of a call is given. */
INLINE u32 keep_name(struct names *n, struct given *g, u32 key, u32 op, u64 ptr, s32 dfd, bool has_dir, u32 shared, u32 second)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct path_pair start;
	u32 kept = 0;

	if (!s)
		return 0;
	if (has_dir && dfd != AT_FDCWD && shared & SHARES_FILES) {
		file_path(fd_file(dfd), &g->dir[second]);
		kept |= GIVEN_DIR << second;
	}
	if (!n)
		return kept;
	kept |= keep_text(n, ptr, second);
	if (!has_dir || !moves_places(op))
		return kept;
	n->absolute[second] = kept & GIVEN_TEXT << second && n->text_len[second] && n->text[second][0] == '/';
	base_path(n->absolute[second], dfd, &start);
	s->r.marks = 0;
	return kept | keep_place(n, s, put_path(key, 0, start.mnt, start.dentry), second);
}

/* Keeps what the present call is given. s->args has its arguments. */
GLOBAL u32 keep_given(u32 key, u32 nr, u32 compat32, u32 shared)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct names *n = NULL;
	const struct desc *d;
	struct given *g;
	u32 kept = 0;
	u64 fs;

	if (!s)
		return 0;
	d = desc_of(nr, compat32);
	g = &s->given;
	g->since = bpf_ktime_get_ns();
	if (shared & SHARES_FILES)
		kept |= GIVEN_FILES;
	if (shared & SHARES_FS) {
		fs = POINTER(task_struct, bpf_get_current_task(), fs);
		g->root.mnt = POINTER(fs_struct, fs, root.mnt);
		g->root.dentry = POINTER(fs_struct, fs, root.dentry);
		g->pwd.mnt = POINTER(fs_struct, fs, pwd.mnt);
		g->pwd.dentry = POINTER(fs_struct, fs, pwd.dentry);
		kept |= GIVEN_START;
	}
	if (shared & SHARES_MEMORY) {
		kept |= GIVEN_SHARED;
		if (d->op == OP_OPENAT2 && !bpf_probe_read_user(g->how, sizeof(g->how), (void *)s->args[2]))
			kept |= GIVEN_HOW;
	}
	if (shared & SHARES_MEMORY || always_kept(d->op) || d->path1 == NO)
		n = names_of_task(BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (d->path1 != NO) {
		kept |= keep_name(n, g, key, d->op, s->args[d->path1 & 7], s->args[d->dfd1 & 7], true, shared, 0);
	} else if (d->dfd1 != NO && shared & SHARES_FILES && n) {
		g->file = fd_file(s->args[d->dfd1 & 7]);
		file_path(g->file, &g->dir[0]);
		s->r.marks = 0;
		kept |= GIVEN_FILE | keep_place(n, s, put_file(key, 0, g->file), 0);
		n->i_mode = s->r.i_mode;
	}
	if (d->path2 != NO)
		kept |= keep_name(n, g, key, d->op, s->args[d->path2 & 7], s->args[d->dfd2 & 7], d->dfd2 != NO, shared, 1);
	g->kept = kept;
	return 0;
}

INLINE bool same_place(struct path_pair *a, struct path_pair *b)
{
	return a->mnt == b->mnt && a->dentry == b->dentry;
}

/* Is the text in the scratch record the one that was kept? */
GLOBAL u32 same_text(u32 key, u64 off, u32 len, u32 second)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct names *n = names_of_task(0);
	u8 *now, *then;

	BARRIER(off);
	if (!s || !n || off > BLOB_LAST || n->text_len[second & 1] != len)
		return 0;
	now = &s->blob[off];
	then = n->text[second & 1];
	BARRIER(now); /* the bound of the offset is lost if it is added again for each word */
	BARRIER(then);
	for (u32 i = 0; i < TEXT_MAX; i += 8) {
		u64 differs;

		if (i >= len)
			return 1;
		differs = *(u64 *)(now + i) ^ *(u64 *)(then + i);
		if (len - i < 8) /* it ends here: a verifier that goes on from here at each word follows ten times as much */
			return !(differs & ((1ULL << (len - i) * 8) - 1));
		if (differs)
			return 0;
	}
	return 1;
}

/* Appends a name's text: the one that was kept, where it is another one now. Returns its length. */
GLOBAL u64 put_text(u32 key, u64 off, u64 ptr, u32 second)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct names *n;
	u32 faults, len;
	u64 got;

	BARRIER(off);
	if (!s || off > BLOB_LAST)
		return 0;
	faults = s->r.marks & MARK_UFAULT;
	got = put_user_str(key, off, ptr);
	if (!(s->given.kept & GIVEN_TEXT << second) || same_text(key, off, got, second))
		return got;
	n = names_of_task(0);
	if (!n)
		return got;
	len = n->text_len[second & 1];
	BARRIER(len);
	if (len >= TEXT_MAX || bpf_probe_read_kernel(&s->blob[off], len, n->text[second & 1]))
		return got;
	s->r.marks = (s->r.marks & ~(u32)MARK_UFAULT) | faults;
	if (s->given.kept & GIVEN_SHARED)
		s->r.marks |= MARK_CHANGED;
	return len;
}

/* Appends a place that was kept. Returns the bytes written. */
GLOBAL u64 put_place(u32 key, u64 off, u32 second)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct names *n = names_of_task(0);
	u32 len;

	BARRIER(off);
	if (!s || !n || off > BLOB_LAST)
		return 0;
	len = n->place_len[second & 1];
	BARRIER(len);
	if (len > PLACE_MAX || bpf_probe_read_kernel(&s->blob[off], len, n->place[second & 1]))
		return 0;
	s->r.marks |= n->marks[second & 1];
	s->r.i_mode = n->i_mode;
	return len;
}

/* Appends the place that a name starts from. Returns the bytes written and one; 0 if it is another one now than when the call
 * was entered: then nobody knows which of them the kernel took. */
GLOBAL u64 put_start(u32 key, u64 off, s32 dfd, u32 absolute, u32 second)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct path_pair now, *then = NULL;
	bool changed = false;
	struct names *n;

	if (!s)
		return 0;
	if (s->given.kept & GIVEN_PLACE << second) {
		n = names_of_task(0);
		if (n && n->absolute[second & 1] == absolute)
			return put_place(key, off, second) + 1;
		s->r.marks |= MARK_CHANGED;
		return 0;
	}
	base_path(absolute, dfd, &now);
	if (!absolute && dfd != AT_FDCWD) {
		if (s->given.kept & GIVEN_DIR << second)
			then = &s->given.dir[second & 1];
		changed = descriptor_changed(&s->given, dfd);
	} else if (s->given.kept & GIVEN_START) {
		then = absolute ? &s->given.root : &s->given.pwd;
		changed = table_changed(POINTER(task_struct, bpf_get_current_task(), fs), CHANGES_START, s->given.since);
	}
	if (changed || (then && !same_place(then, &now))) {
		s->r.marks |= MARK_CHANGED;
		return 0;
	}
	return put_path(key, off, now.mnt, now.dentry) + 1;
}

/* Puts a user path and the directory it starts from, as the record's first or
 * second name. Returns the new offset. */
GLOBAL u64 put_user_path(u32 key, u64 off, u64 ptr, s32 dfd, u32 second)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	u32 absolute;
	u64 n, c;

	if (!s)
		return off;
	n = put_text(key, off, ptr, second);
	BARRIER(off);
	if (off > BLOB_LAST)
		return off;
	absolute = n && s->blob[off] == '/' && !(s->r.resolve & RESOLVE_IN_ROOT);
	mark_chroot(s, key, off, n);
	c = put_start(key, off + n, dfd, absolute, second);
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
INLINE u64 put_descriptor(struct scratch *s, u32 key, s32 fd)
{
	struct given *g = &s->given;
	u64 file = fd_file(fd);
	struct path_pair now;
	bool changed = false;

	if (g->kept & (GIVEN_FILE | GIVEN_DIR)) {
		file_path(file, &now);
		changed = (g->kept & GIVEN_FILE && file != g->file) || !same_place(&now, &g->dir[0]) ||
			  descriptor_changed(g, fd);
	}
	if (changed)
		s->r.marks |= MARK_CHANGED;
	if (g->kept & GIVEN_PLACE && (changed || !(g->kept & GIVEN_FILE))) {
		s->r.clen1 = put_place(key, 0, 0);
		s->r.marks |= MARK_HAS_PATH;
	} else if (file && !changed) {
		s->r.clen1 = put_file(key, 0, file);
	}
	return s->r.clen1;
}

#endif
