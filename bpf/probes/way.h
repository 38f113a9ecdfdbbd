/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The way from a dentry up to the top of its mount tree, and whether it was the same all the time that a walk read it. */
#ifndef RUNNER_WAY_H
#define RUNNER_WAY_H

#include "maps.h"
#include "memory.h"

struct links {
	u64 parent, name;
	u32 len;
};

INLINE void read_links(struct links *l, u64 at)
{
	l->len = 0;
	l->parent = POINTER(dentry, at, d_parent);
	l->name = POINTER(dentry, at, d_name.name);
	READ_FIELD(l->len, dentry, at, d_name.len);
}

struct mount_links {
	u64 parent, point, ns;
};

INLINE void read_mount(struct mount_links *l, u64 at)
{
	l->parent = POINTER(mount, at, mnt_parent);
	l->point = POINTER(mount, at, mnt_mountpoint);
	l->ns = POINTER(mount, at, mnt_ns);
}

/* The dentry at which a mount begins. */
INLINE u64 mount_root(u64 mnt)
{
	return POINTER(vfsmount, mnt, mnt_root);
}

/* Whether a mount tree is in no namespace that a process can be in: unmounted while
 * in use, or made by open_tree or fsmount and mounted nowhere. Such a namespace has
 * no inode number, or since Linux 6.18 one that all of them share. */
INLINE bool nowhere(u64 ns)
{
	u32 inum = 1;

	if (!ns)
		return true;
	READ_FIELD(inum, mnt_namespace, ns, ns.inum);
	return inum == 0 || inum == 0xeffffff7;
}

/* Is a mount tree in the mount namespace of the present task? The path of one that is in another one is a name there. */
INLINE bool is_here(u64 ns)
{
	return ns && ns == POINTER(nsproxy, POINTER(task_struct, bpf_get_current_task(), nsproxy), mnt_ns);
}

/* Is a mount that is in the mount namespace of the present task, and below no other one, the top of it? While one is moved it is below none for
 * a moment, too. */
INLINE bool is_end(u64 ns, u64 mount)
{
	return POINTER(mnt_namespace, ns, root) == mount;
}

/* A rename can come in between: then a path is made of names that were never together, or of one half. The kernel counts the renames of
 * each directory and file, so the way is gone a second time: if all counts are as they were, the path was there as it is told. A count that
 * is odd is of one that is being renamed: then a second look sees the same half. */
#define BEING_CHANGED (1ULL << 63)

INLINE void note_step(volatile u64 *changes, volatile u64 *way, u64 dentry)
{
	u32 n = 0;

	READ_FIELD(n, dentry, dentry, d_seq.seqcount.sequence);
	*changes = (*changes + n) | (u64)n << 63;
	*way = (*way ^ dentry) * 0x9e3779b97f4a7c15;
}

/* A way through a mount. */
INLINE void note_mount(volatile u64 *way, u64 mount)
{
	*way = (*way ^ mount) * 0x9e3779b97f4a7c15;
}

/* Goes one step of the way once more. Returns 1 at its end. */
INLINE long go_step(struct scratch *s)
{
	struct mount_links m;
	struct way *w;
	u64 at, up;

	if (!s)
		return 1;
	w = &s->again;
	if (w->dentry == w->root) {
		at = w->mnt - OFFSET(struct mount, mnt);
		read_mount(&m, at);
		if (!m.parent || !m.point)
			goto end;
		note_mount(&w->way, at);
		if (m.parent == at) {
			if (!is_here(m.ns)) {
				w->root = 0;
				return 0;
			}
			if (!is_end(m.ns, at))
				w->changes |= BEING_CHANGED;
			goto end;
		}
		w->dentry = m.point;
		w->mnt = m.parent + OFFSET(struct mount, mnt);
		w->root = mount_root(w->mnt);
		return 0;
	}
	at = w->dentry;
	note_step(&w->changes, &w->way, at);
	up = POINTER(dentry, at, d_parent);
	if (!up || up == at)
		goto end;
	w->dentry = up;
	return 0;
end:
	w->done = 1;
	return 1;
}

static long way_step(u32 i, struct scratch **s)
{
	return go_step(*s);
}

#define WAY_STEPS 512 /* of a path with more names nobody knows */
#define WAY_PIECE 32

/* One step, and a piece of the way, for kernels that have no bpf_loop. The latter returns 0 if there is more. */
GLOBAL u32 go_once(struct scratch *s)
{
	return go_step(s);
}

GLOBAL u32 go_piece(struct scratch *s)
{
	for (int i = 0; i < WAY_PIECE; i++)
		if (go_once(s))
			return 1;
	return 0;
}

/* Goes at most so many steps of the way. */
INLINE void go_again(struct scratch *s, u32 steps)
{
	if (!no_loop) {
		bpf_loop(steps, way_step, &s, 0);
		return;
	}
	for (u32 i = 0; i < WAY_STEPS / WAY_PIECE && i * WAY_PIECE < steps; i++)
		if (go_piece(s))
			return;
}

INLINE void begin_again(struct scratch *s, u64 mnt, u64 dentry)
{
	s->again = (struct way){ .dentry = dentry, .mnt = mnt, .root = mount_root(mnt) };
}

INLINE bool is_same_way(struct scratch *s)
{
	return s->again.changes == s->walk.changes && s->again.way == s->walk.way && !(s->walk.changes & BEING_CHANGED);
}

#endif
