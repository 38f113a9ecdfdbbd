/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Keeps what a call was given when it is entered (taken.h compares it when it ends). The kernel takes it soon after the
 * entry, and can sleep long after that. Between the two another thread can change a text, a descriptor or the working
 * directory, and the call itself can move the directory that its name starts from. */
#ifndef RUNNER_KEEP_H
#define RUNNER_KEEP_H

#include "changes.h"
#include "marks.h"
#include "others.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, struct name);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, struct name);
} second_names SEC(".maps");

/* What is kept of the first or the second name of the task's present call. */
INLINE struct name *name_of_task(u32 second, u64 flags)
{
	if (second)
		return bpf_task_storage_get(&second_names, bpf_get_current_task_btf(), 0, flags);
	return bpf_task_storage_get(&names, bpf_get_current_task_btf(), 0, flags);
}

/* What a task shares with others. */
enum { SHARES_FS = 1 << 0, SHARES_FILES = 1 << 1, SHARES_MEMORY = 1 << 2, SHARES_WITH_THREADS = 1 << 3 /* all memory */ };

/* SET if a number is greater than one, without a branch: a verifier follows each way that leads from here on its own. */
INLINE u32 if_several(s32 users, u32 set)
{
	s64 n = 1 - (s64)users;

	BARRIER(n); /* or the compiler makes a branch */
	return n >> 63 & set;
}

INLINE u32 shares(u64 task)
{
	s32 fs = 0, files = 0, memory = 0;

	READ_FIELD(fs, fs_struct, POINTER(task_struct, task, fs), users);
	READ_FIELD(files, files_struct, POINTER(task_struct, task, files), count.counter);
	READ_FIELD(memory, mm_struct, POINTER(task_struct, task, mm), mm_users.counter);
	return if_several(fs, SHARES_FS) | if_several(files + 2 * has_rings(task), SHARES_FILES) | if_several(memory, SHARES_MEMORY | SHARES_WITH_THREADS);
}

/* Calls that can move the places that their own names start from. */
INLINE bool moves_places(u32 op)
{
	return op == OP_RENAME || op == OP_MOUNT || op == OP_UMOUNT || op == OP_MOVE_MOUNT || op == OP_PIVOT_ROOT;
}

/* Calls that are kept of every task. An exec that fails can have taken the memory away before. */
INLINE bool always_kept(u32 op)
{
	return moves_places(op) || op == OP_EXECVE || op == OP_EXECVEAT;
}

/* Can other processes change the texts of a call, or the structure of openat2? s->args has its arguments. */
GLOBAL u32 others_reach_call(struct scratch *s, u32 nr, u32 compat32)
{
	const struct desc *d;

	if (!s)
		return 0;
	d = desc_of(nr, compat32);
	if (d->path1 != NO && others_reach(s, s->args[d->path1 & 7], UPATH_MAX))
		return 1;
	if (d->path2 != NO && others_reach(s, s->args[d->path2 & 7], UPATH_MAX))
		return 1;
	return d->op == OP_OPENAT2 && others_reach(s, s->args[2], HOW_SIZE);
}

/* How a name is kept. */
enum {
	KEEP_SECOND = 1 << 0, /* it is the call's second one */
	KEEP_TEXT = 1 << 1,
	KEEP_DIR = 1 << 2,   /* the directory of its descriptor */
	KEEP_PLACE = 1 << 3, /* where it starts, as a path */
	KEEP_SHARED = 1 << 4, /* others can change its text */
	KEEP_THREADS = 1 << 5, /* threads can */
};

INLINE u32 keep_text(struct name *n, u64 ptr, u32 how)
{
	u32 second = how & KEEP_SECOND;
	s64 len = bpf_probe_read_user_str(n->text, TEXT_MAX, (void *)ptr);

	n->text_len = 0;
	if (len < 0)
		return how & KEEP_SHARED && others_write_text(ptr, how & KEEP_THREADS) ? GIVEN_UNREAD << second : 0;
	if (len)
		n->text_len = len - 1;
	return GIVEN_TEXT << second;
}

/* Keeps the path that was just written to the scratch record. */
INLINE u32 keep_place(struct name *n, struct scratch *s, u64 len, u32 second)
{
	BARRIER(len);
	if (len > PLACE_MAX || s->r.marks & (MARK_PFAULT | MARK_PTRUNC) || bpf_probe_read_kernel(n->place, len, s->blob))
		return 0;
	n->place_len = len;
	n->marks = s->r.marks;
	return GIVEN_PLACE << second;
}

/* Keeps what one name of a call is given. Without memory for a text that others can change, or for a place that the call itself can
 * move, nobody knows which one the kernel takes. */
GLOBAL u32 keep_name(struct scratch *s, u64 ptr, s32 dfd, u32 how)
{
	u32 second = how & KEEP_SECOND, kept = 0, place;
	struct path_pair start;
	struct name *n;

	if (!s)
		return 0;
	if (how & KEEP_DIR && dfd != AT_FDCWD) {
		file_path(fd_file(dfd), &s->given.dir[second]);
		kept |= GIVEN_DIR << second;
	}
	if (!(how & KEEP_TEXT))
		return kept;
	n = name_of_task(second, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!n)
		return kept | (how & (KEEP_SHARED | KEEP_PLACE) ? GIVEN_UNREAD << second : 0);
	kept |= keep_text(n, ptr, how);
	if (!(how & KEEP_PLACE))
		return kept;
	/* a text that is not in memory yet is taken for a relative one: where absolute ones start is known later as well */
	n->absolute = kept & GIVEN_TEXT << second && n->text_len && n->text[0] == '/';
	base_path(n->absolute, dfd, &start);
	if (starts_nowhere(&start, n->absolute, dfd))
		return kept;
	s->r.marks = 0;
	place = keep_place(n, s, put_path(s, 0, start.mnt, start.dentry), second);
	if (!place && s->r.marks & (MARK_PFAULT | MARK_PTRUNC)) {
		place = GIVEN_UNREAD << second;
	} else if (!place) {
		n->changes = s->walk.changes;
		n->way = s->walk.way;
		place = GIVEN_WAY << second;
	}
	return kept | place;
}

/* Keeps the file of the descriptor that a call is about. */
GLOBAL u32 keep_descriptor(struct scratch *s, s32 fd)
{
	struct name *n = name_of_task(0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 kept;

	if (!s)
		return 0;
	s->given.file = fd_file(fd);
	file_path(s->given.file, &s->given.dir[0]);
	if (!n) /* no memory: then only whether it is the same is known at the end */
		return GIVEN_FILE;
	s->r.marks = 0;
	kept = GIVEN_FILE | keep_place(n, s, put_file(s, 0, s->given.file), 0);
	n->i_mode = s->r.i_mode;
	return kept;
}

/* Keeps the root and the working directory, if others have them too. */
INLINE u32 keep_start(struct given *g, u64 task, u32 shared)
{
	u64 fs;

	if (!(shared & SHARES_FS))
		return 0;
	fs = POINTER(task_struct, task, fs);
	g->root.mnt = POINTER(fs_struct, fs, root.mnt);
	g->root.dentry = POINTER(fs_struct, fs, root.dentry);
	g->pwd.mnt = POINTER(fs_struct, fs, pwd.mnt);
	g->pwd.dentry = POINTER(fs_struct, fs, pwd.dentry);
	return GIVEN_START;
}

/* Where the text is that a call of CLASS_SPECIAL is given; 0 without one. */
INLINE u64 text_of_special(u32 op, const u64 *args)
{
	u64 path = 0;

	switch (op) {
	case OP_KERNEL_FILE:
	case OP_MQ_OPEN:
	case OP_MQ_UNLINK:
		return args[0];
	case OP_BPF_OBJ_PIN: /* it is the first of what the structure has */
		if ((u32)args[0] == BPF_OBJ_PIN || (u32)args[0] == BPF_OBJ_GET)
			bpf_probe_read_user(&path, sizeof(path), (void *)args[1]);
	}
	return path;
}

/* Keeps what such a call is given. s->args has its arguments. */
GLOBAL u32 keep_special(struct scratch *s, u32 op, u32 shared)
{
	struct given *g;
	u64 at;

	if (!s)
		return 0;
	at = text_of_special(op, s->args);
	g = &s->given;
	g->since = bpf_ktime_get_ns();
	g->kept = keep_start(g, s->task, shared);
	if (shared & SHARES_FILES) {
		g->kept |= GIVEN_FILES;
		if (op == OP_FSCONFIG) {
			g->file = fd_file(s->args[0]);
			g->kept |= GIVEN_FILE;
		}
	}
	if (!at)
		return 0;
	if (!(shared & SHARES_MEMORY) && !others_reach(s, at, UPATH_MAX) && !(op == OP_BPF_OBJ_PIN && others_reach(s, s->args[1], PIN_SIZE)))
		return 0;
	g->kept |= GIVEN_SHARED;
	g->kept |= keep_name(s, at, AT_FDCWD, KEEP_TEXT | KEEP_SHARED | (shared & SHARES_WITH_THREADS ? KEEP_THREADS : 0));
	return 0;
}

/* Keeps what the present call is given. s->args has its arguments. */
GLOBAL u32 keep_given(struct scratch *s, u32 nr, u32 compat32, u32 shared)
{
	u32 kept = 0, dir = shared & SHARES_FILES ? KEEP_DIR : 0, how = 0;
	const struct desc *d;
	struct given *g;

	if (!s)
		return 0;
	d = desc_of(nr, compat32);
	g = &s->given;
	g->since = bpf_ktime_get_ns();
	if (shared & SHARES_FILES)
		kept |= GIVEN_FILES;
	kept |= keep_start(g, s->task, shared);
	if (shared & SHARES_MEMORY) {
		kept |= GIVEN_SHARED;
		if (d->op == OP_OPENAT2 && !bpf_probe_read_user(g->how, sizeof(g->how), (void *)s->args[2]))
			kept |= GIVEN_HOW;
	}
	if (d->class == CLASS_EXEC) {
		g->memory = POINTER(task_struct, s->task, mm);
		g->files = descriptors_of(s->task);
		kept |= GIVEN_MEMORY;
	}
	if (shared & SHARES_MEMORY || always_kept(d->op) || d->path1 == NO)
		how = KEEP_TEXT | (moves_places(d->op) ? KEEP_PLACE : 0) | (shared & SHARES_MEMORY ? KEEP_SHARED : 0) |
		      (shared & SHARES_WITH_THREADS ? KEEP_THREADS : 0);
	if (d->path1 != NO)
		kept |= keep_name(s, s->args[d->path1 & 7], s->args[d->dfd1 & 7], how | dir);
	else if (d->dfd1 != NO && dir)
		kept |= keep_descriptor(s, s->args[d->dfd1 & 7]);
	if (d->path2 != NO) {
		if (d->dfd2 == NO)
			how &= ~(u32)KEEP_PLACE;
		kept |= keep_name(s, s->args[d->path2 & 7], s->args[d->dfd2 & 7], how | (d->dfd2 != NO ? dir : 0) | KEEP_SECOND);
	}
	g->kept = kept;
	return 0;
}

#endif
