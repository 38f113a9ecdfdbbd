/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The path walk: from a dentry and its mount up to the top of the mount tree,
 * as the kernel has them. bpf_d_path is not allowed in tracepoint programs. */
#ifndef RUNNER_WALK_H
#define RUNNER_WALK_H

#include "maps.h"

struct walk {
	u64 dentry;
	u64 mnt;  /* struct vfsmount */
	u64 root; /* its mnt_root */
	u64 off;
	u64 end;
	u32 key; /* of the scratch record */
	u32 marks;
	u32 done;
	u32 pad;
};

struct links {
	u64 parent, name;
	u32 len;
};

INLINE void read_links(struct links *l, u64 at)
{
	struct dentry *d = (void *)at;

	l->parent = l->name = l->len = 0;
	if (CAN_CAST) {
		d = CAST(dentry, at);
		l->parent = NUMBER(d->d_parent);
		l->name = NUMBER(d->d_name.name);
		l->len = d->d_name.len;
	} else {
		READ(l->parent, d, d_parent);
		READ(l->name, d, d_name.name);
		READ(l->len, d, d_name.len);
	}
}

struct mount_links {
	u64 parent, point, ns;
};

INLINE void read_mount(struct mount_links *l, u64 at)
{
	struct mount *m = (void *)at;

	l->parent = l->point = l->ns = 0;
	if (CAN_CAST) {
		m = CAST(mount, at);
		l->parent = NUMBER(m->mnt_parent);
		l->point = NUMBER(m->mnt_mountpoint);
		l->ns = NUMBER(m->mnt_ns);
	} else {
		READ(l->parent, m, mnt_parent);
		READ(l->point, m, mnt_mountpoint);
		READ(l->ns, m, mnt_ns);
	}
}

/* The dentry at which a mount begins. */
INLINE u64 mount_root(u64 mnt)
{
	struct vfsmount *m = (void *)mnt;
	u64 root = 0;

	if (CAN_CAST)
		return NUMBER(CAST(vfsmount, mnt)->mnt_root);
	READ(root, m, mnt_root);
	return root;
}

/* Whether a mount tree is in no namespace that a process can be in: unmounted while
 * in use, or made by open_tree or fsmount and mounted nowhere. Such a namespace has
 * no inode number, or since Linux 6.18 one that all of them share. */
INLINE bool nowhere(u64 ns)
{
	struct mnt_namespace *at = (void *)ns;
	u32 inum = 1;

	if (!ns)
		return true;
	if (CAN_CAST)
		inum = CAST(mnt_namespace, ns)->ns.inum;
	else
		READ(inum, at, ns.inum);
	return inum == 0 || inum == 0xeffffff7;
}

static long walk_step(u32 i, struct walk *w)
{
	struct scratch *s;
	struct links l;
	u64 off, n;

	if (w->dentry == w->root) {
		u64 at = w->mnt - OFFSET(struct mount, mnt);
		struct mount_links m;

		read_mount(&m, at);
		if (!m.parent || !m.point)
			goto fault;
		if (m.parent == at) {
			if (nowhere(m.ns)) { /* then the place in the file system says more */
				w->marks |= MARK_DETACHED;
				w->root = 0;
				return 0;
			}
			w->done = 1;
			return 1;
		}
		w->dentry = m.point;
		w->mnt = m.parent + OFFSET(struct mount, mnt);
		w->root = mount_root(w->mnt);
		if (!w->root)
			goto fault;
		return 0;
	}
	read_links(&l, w->dentry);
	if (!l.parent || !l.name)
		goto fault;
	s = bpf_map_lookup_elem(&scratch, &w->key);
	if (!s)
		return 1;
	off = w->off;
	n = l.len & 255;
	if (off + n >= w->end || off > BLOB_LAST) {
		w->marks |= MARK_PTRUNC;
		w->done = 1;
		return 1;
	}
	BARRIER(off);
	if (off > BLOB_LAST)
		return 1;
	s->blob[off] = n;
	if (bpf_probe_read_kernel(&s->blob[off + 1], n & 255, (void *)l.name))
		goto fault;
	w->off = off + 1 + n;
	if (l.parent == w->dentry) {
		if (w->marks & MARK_DETACHED) { /* an empty component ends the path */
			s->blob[off] = 0;
			w->off = off + 1;
		} else {
			w->marks |= MARK_DISCONN;
		}
		w->done = 1;
		return 1;
	}
	w->dentry = l.parent;
	return 0;
fault:
	w->marks |= MARK_PFAULT;
	w->done = 1;
	return 1;
}

/* Appends the components of a path at blob offset off of scratch record key.
 * Returns the bytes written; what went wrong is added to the record's marks.
 * 4,200 steps pass every path that fits. */
GLOBAL u64 put_path(u32 key, u64 off, u64 mnt, u64 dentry)
{
	struct walk w = { .dentry = dentry, .mnt = mnt, .off = off, .end = off + COMP_MAX, .key = key };
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);

	if (!s)
		return 0;
	if (dentry && mnt)
		w.root = mount_root(mnt);
	if (!w.root) {
		s->r.marks |= MARK_PFAULT;
		return 0;
	}
	bpf_loop(4200, walk_step, &w, 0);
	if (!w.done)
		w.marks |= MARK_PTRUNC;
	s->r.marks |= w.marks;
	return w.off - off;
}

/* The current task as a plain address. Following pointers from the typed one that
 * the helper returns makes the verifier search all kernel types by name, four
 * times a pointer: tens of milliseconds at every start. */
INLINE u64 current_task(void)
{
	return NUMBER(bpf_get_current_task_btf());
}

GLOBAL u64 fd_file(s32 fd)
{
	u64 file = 0, slots = 0;
	u32 n = 0;

	if (CAN_CAST) {
		struct fdtable *fdt = CAST(task_struct, current_task())->files->fdt;

		slots = (u64)fdt->fd;
		n = fdt->max_fds;
	} else {
		struct fdtable *fdt = bpf_get_current_task_btf()->files->fdt;

		slots = (u64)fdt->fd;
		n = fdt->max_fds;
	}
	if (fd < 0 || (u32)fd >= n || !slots)
		return 0;
	bpf_probe_read_kernel(&file, 8, (void *)(slots + 8 * (u64)(u32)fd));
	return file;
}

/* Type and permissions of the file's inode. */
INLINE u16 file_mode(u64 file)
{
	struct file *f = (void *)file;
	struct inode *inode = NULL;
	u16 mode = 0;

	if (CAN_CAST)
		return CAST(file, file)->f_inode->i_mode;
	if (!READ(inode, f, f_inode) && inode)
		READ(mode, inode, i_mode);
	return mode;
}

INLINE u32 file_flags(u64 file)
{
	u32 flags = 0;

	if (CAN_CAST)
		return CAST(file, file)->f_flags;
	READ(flags, (struct file *)file, f_flags);
	return flags;
}

/* Whether a descriptor's file can be the one that was opened just now with these
 * flags: then nothing else holds it yet. A file that another thread put there with
 * dup2 in the meantime is also held by the descriptor that it was copied from. */
INLINE bool just_opened(u64 file, u64 flags)
{
	s64 n = -1;

	if (!file)
		return false;
	if (EXISTS(struct file, f_ref)) {
		bpf_probe_read_kernel(&n, sizeof(n), (void *)(file + OFFSET(struct file, f_ref)));
		n++;
	} else {
		bpf_probe_read_kernel(&n, sizeof(n), (void *)(file + OFFSET(struct file, f_count)));
	}
	return n == 1 && (flags & O_PATH || !((file_flags(file) ^ flags) & O_ACCMODE));
}

struct path_pair {
	u64 mnt, dentry;
};

INLINE void file_path(u64 file, struct path_pair *p)
{
	p->mnt = p->dentry = 0;
	if (!file)
		return;
	if (CAN_CAST) {
		struct file *f = CAST(file, file);

		p->mnt = NUMBER(f->f_path.mnt);
		p->dentry = NUMBER(f->f_path.dentry);
	} else {
		bpf_probe_read_kernel(p, sizeof(*p), (void *)(file + OFFSET(struct file, f_path)));
	}
}

/* The directory from which a user path starts: process root for an absolute one,
 * else the working directory or the given descriptor. */
INLINE void base_path(bool absolute, s32 dfd, struct path_pair *p)
{
	p->mnt = p->dentry = 0;
	if (!absolute && dfd != AT_FDCWD) {
		file_path(fd_file(dfd), p);
		return;
	}
	if (CAN_CAST) {
		struct fs_struct *fs = CAST(task_struct, current_task())->fs;

		bpf_probe_read_kernel(p, sizeof(*p), absolute ? (void *)&fs->root : (void *)&fs->pwd);
	} else {
		struct fs_struct *fs = bpf_get_current_task_btf()->fs;

		bpf_probe_read_kernel(p, sizeof(*p), absolute ? (void *)&fs->root : (void *)&fs->pwd);
	}
}

/* MARK_DELETED if the leaf of a resolved path no longer has its name. */
INLINE u32 leaf_marks(u64 dentry)
{
	struct dentry *d = (void *)dentry;
	u64 pprev = 0, parent = 0;

	if (CAN_CAST) {
		d = CAST(dentry, dentry);
		pprev = NUMBER(d->d_hash.pprev);
		parent = NUMBER(d->d_parent);
	} else {
		READ(pprev, d, d_hash.pprev);
		READ(parent, d, d_parent);
	}
	if (pprev || parent == dentry)
		return 0;
	return MARK_DELETED;
}

/* Appends a user string, without its NUL. Returns its length. */
GLOBAL u64 put_user_str(u32 key, u64 off, u64 ptr)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	s64 n;

	BARRIER(off);
	if (!s || off > BLOB_LAST)
		return 0;
	n = bpf_probe_read_user_str(&s->blob[off], UPATH_MAX, (void *)ptr);
	if (n <= 0) {
		s->r.marks |= MARK_UFAULT;
		return 0;
	}
	if (n == UPATH_MAX && s->r.ret == -ENAMETOOLONG)
		s->r.marks |= MARK_UTRUNC;
	return n - 1;
}

/* Appends the path of an open file and sets type and marks.
 * Returns the bytes written. */
GLOBAL u64 put_file(u32 key, u64 off, u64 file)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct path_pair p;
	u64 n;

	if (!s)
		return 0;
	if (!file) {
		s->r.marks |= MARK_HAS_PATH | MARK_PFAULT;
		return 0;
	}
	file_path(file, &p);
	s->r.i_mode = file_mode(file);
	n = put_path(key, off, p.mnt, p.dentry);
	s->r.marks |= MARK_HAS_PATH | leaf_marks(p.dentry);
	if (s->r.marks & MARK_DISCONN)
		s->r.marks |= MARK_UNNAMED;
	return n;
}

/* Whether the process root lies below the top of its mount tree. */
GLOBAL u32 in_chroot(u32 key)
{
	struct path_pair p;

	base_path(true, 0, &p);
	for (int i = 0; i < 8; i++) {
		u64 at = p.mnt - OFFSET(struct mount, mnt);
		struct mount_links m;

		if (!p.mnt || p.dentry != mount_root(p.mnt))
			break;
		read_mount(&m, at);
		if (m.parent == at)
			return 0;
		p.dentry = m.point;
		p.mnt = m.parent + OFFSET(struct mount, mnt);
	}
	return key + 1;
}

/* A path that begins with .. can be stopped by the process root. */
INLINE void mark_chroot(struct scratch *s, u32 key, u64 off, u64 n)
{
	if (n > 1 && off <= BLOB_LAST && s->blob[off] == '.' && in_chroot(key))
		s->r.marks |= MARK_CHROOT;
}

/* Puts a user path and the directory it starts from, as the record's first or
 * second name. Returns the new offset. */
GLOBAL u64 put_user_path(u32 key, u64 off, u64 ptr, s32 dfd, u32 second)
{
	struct scratch *s = bpf_map_lookup_elem(&scratch, &key);
	struct path_pair base;
	u64 n, c;

	if (!s)
		return off;
	n = put_user_str(key, off, ptr);
	BARRIER(off);
	if (off > BLOB_LAST)
		return off;
	base_path(n && s->blob[off] == '/', dfd, &base);
	mark_chroot(s, key, off, n);
	c = put_path(key, off + n, base.mnt, base.dentry);
	if (second) {
		s->r.ulen2 = n;
		s->r.clen2 = c;
		s->r.marks |= MARK_HAS_U2 | MARK_HAS_BASE2;
	} else {
		s->r.ulen1 = n;
		s->r.clen1 = c;
		s->r.marks |= MARK_HAS_U1 | MARK_HAS_BASE1;
	}
	return off + n + c;
}

#endif
