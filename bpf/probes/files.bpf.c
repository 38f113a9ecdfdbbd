//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* File rules, enforced by BPF LSM hooks. A hook runs in the task that makes the call, also
 * when io_uring makes it, and has the objects that the kernel resolved. The loader chooses
 * the programs by the functions bpf_lsm_… that the kernel has. */
#include "files.h"
#include "filesrecord.h"

#define O_EXEC 0x20 /* __FMODE_EXEC: an open for execve, or for an interpreter */
enum { MODE_READ = 1, MODE_WRITE = 2 };
enum { RENAME_EXCHANGE = 2 };
enum { MS_REMOUNT = 1 << 5, MS_BIND = 1 << 12, MS_PROPAGATION = 15 << 17 };
enum { ATTR_CHANGE = 0xf | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8, ATTR_FORCE = 1 << 9 };

/* Set by the loader, from the parameters of the kernel's hooks. */
const volatile bool setattr_first; /* inode_setattr begins with the dentry */
const volatile bool rename_flags;  /* path_rename has flags, and not two calls for an exchange */

/* Whether the rules are about the current task. What the loader itself starts in the scope
 * is not the measured program. */
INLINE bool governed(void)
{
	u64 leader, born = 0, *child;
	u32 tgid = 0;

	if (bpf_current_task_under_cgroup(&scope, 0) != 1)
		return false;
	leader = POINTER(task_struct, bpf_get_current_task(), group_leader);
	READ_FIELD(tgid, task_struct, POINTER(task_struct___files, leader, real_parent), tgid);
	if (tgid != loader)
		return true;
	READ_FIELD(tgid, task_struct, leader, tgid);
	READ_FIELD(born, task_struct, leader, start_boottime);
	child = bpf_map_lookup_elem(&own_children, &tgid); /* others become its children when their parents end */
	return !child || *child != born;
}

INLINE u64 arg(u64 *ctx, u32 i)
{
	u64 v = 0;

	bpf_probe_read_kernel(&v, sizeof(v), ctx + i);
	return v;
}

INLINE u64 mnt_of(u64 path)
{
	return POINTER(path, path, mnt);
}

INLINE u64 dentry_of(u64 path)
{
	return POINTER(path, path, dentry);
}

/* The verifier must see that the result is -EPERM: compilers compute it from a condition
 * in ways that it cannot follow. */
INLINE int result(u32 refused)
{
	long r = 0;

	if (refused)
		asm volatile("%0 = -1" : "=r"(r));
	return r;
}

/* A refusal because a place could not be found: any rule can be about it. */
INLINE void count_lost(u64 object, u64 name)
{
	if (STATE(object) == PLACE_LOST || STATE(name) == PLACE_LOST)
		count_unresolved();
}

/* One operation on one object. Without a mount, only its place counts. */
GLOBAL u32 check(u64 mnt, u64 dentry, u32 op)
{
	u64 object = object_place(dentry), name = name_place(mnt, dentry);
	u32 v = decide(object, name, op);

	if (!DENIES(v))
		return 0;
	count_lost(object, name);
	return refuse_file(mnt, dentry, HOOK_READ << op, v);
}

/* Both places of a thing that moves, and the mount of both. */
struct two {
	u64 mnt;
	u64 object, name;
	u64 to_object, to_name;
};

INLINE u32 below(u64 place)
{
	u32 node = place;
	struct file_node *n;

	if (STATE(place) != PLACE_KNOWN || !EXACT(place))
		return 0;
	n = bpf_map_lookup_elem(&file_nodes, &node);
	return n ? n->below : 1;
}

INLINE u32 allows_below(u64 place)
{
	u32 node = place;
	struct file_node *n;

	if (STATE(place) == PLACE_LOST)
		return ~0;
	if (STATE(place) != PLACE_KNOWN || !EXACT(place))
		return 0;
	n = bpf_map_lookup_elem(&file_nodes, &node);
	return n ? n->allow_below : ~0;
}

/* Whether a move would make a rule void: something that is denied now would be allowed, or
 * a rule denies something further down. */
GLOBAL u32 check_move(u64 mnt, u64 from, u64 to)
{
	u64 object = object_place(from), name = name_place(mnt, from);
	u64 to_object = object_place(to), to_name = name_place(mnt, to);
	u32 allowed = allows_below(to_object) | allows_below(to_name), v;

	for (int op = 0; op < FILE_OPS; op++) {
		v = decide(object, name, op);
		if (DENIES(v) && (allowed >> op & 1 || !DENIES(decide(to_object, to_name, op)))) {
			count_lost(object, name);
			return refuse_file(mnt, from, HOOK_MOVE, v);
		}
	}
	v = below(object);
	if (!v)
		v = below(name);
	return v ? refuse_file(mnt, from, HOOK_MOVE, v) : 0;
}

SEC("lsm/file_open")
int on_file_open(u64 *ctx)
{
	u64 file = arg(ctx, 0);
	struct path_pair p;
	u32 mode = 0;

	if (!governed())
		return 0;
	file_path(file, &p);
	if (file_flags(file) & O_EXEC)
		return result(check(p.mnt, p.dentry, FILE_EXEC));
	READ_FIELD(mode, file, file, f_mode);
	if (mode & MODE_READ && check(p.mnt, p.dentry, FILE_READ))
		return result(1);
	return result(mode & MODE_WRITE && check(p.mnt, p.dentry, FILE_WRITE));
}

/* A name in a directory. */
INLINE int on_name(u64 *ctx, u32 op)
{
	if (!governed())
		return 0;
	return result(check(mnt_of(arg(ctx, 0)), arg(ctx, 1), op));
}

SEC("lsm/path_unlink")
int on_path_unlink(u64 *ctx)
{
	return on_name(ctx, FILE_DELETE);
}

SEC("lsm/path_rmdir")
int on_path_rmdir(u64 *ctx)
{
	return on_name(ctx, FILE_DELETE);
}

SEC("lsm/path_mkdir")
int on_path_mkdir(u64 *ctx)
{
	return on_name(ctx, FILE_CREATE);
}

SEC("lsm/path_mknod")
int on_path_mknod(u64 *ctx)
{
	return on_name(ctx, FILE_CREATE);
}

SEC("lsm/path_symlink")
int on_path_symlink(u64 *ctx)
{
	return on_name(ctx, FILE_CREATE);
}

/* The kernel makes no link from one mount to another. */
SEC("lsm/path_link")
int on_path_link(u64 *ctx)
{
	u64 mnt;

	if (!governed())
		return 0;
	mnt = mnt_of(arg(ctx, 1));
	return result(check(mnt, arg(ctx, 2), FILE_CREATE) || check_move(mnt, arg(ctx, 0), arg(ctx, 2)));
}

SEC("lsm/path_rename")
int on_path_rename(u64 *ctx)
{
	u64 mnt, from, to;
	bool there;

	if (!governed())
		return 0;
	mnt = mnt_of(arg(ctx, 0));
	from = arg(ctx, 1);
	to = arg(ctx, 3);
	there = POINTER(dentry, to, d_inode) != 0;
	if (check(mnt, from, FILE_DELETE) || (there && check(mnt, to, FILE_DELETE)) || check(mnt, to, FILE_CREATE))
		return result(1);
	if (rename_flags && (u32)arg(ctx, 4) & RENAME_EXCHANGE &&
	    (check(mnt, from, FILE_CREATE) || check_move(mnt, to, from)))
		return result(1);
	return result(check_move(mnt, from, to));
}

/* A path. */
INLINE int on_path(u64 path, u32 op)
{
	if (!governed())
		return 0;
	return result(check(mnt_of(path), dentry_of(path), op));
}

SEC("lsm/path_truncate")
int on_path_truncate(u64 *ctx)
{
	return on_path(arg(ctx, 0), FILE_WRITE);
}

/* Since Linux 6.2, for an open file. */
SEC("lsm/file_truncate")
int on_file_truncate(u64 *ctx)
{
	return on_path(arg(ctx, 0) + OFFSET(struct file, f_path), FILE_WRITE);
}

SEC("lsm/path_chmod")
int on_path_chmod(u64 *ctx)
{
	return on_path(arg(ctx, 0), FILE_WRITE);
}

SEC("lsm/path_chown")
int on_path_chown(u64 *ctx)
{
	return on_path(arg(ctx, 0), FILE_WRITE);
}

/* What only a dentry says. A stacked file system does the same on its layer, as another
 * user; then the default is no answer, because the name above was checked. */
INLINE int on_object(u64 dentry)
{
	u64 object;
	u32 v;

	if (!governed())
		return 0;
	object = object_place(dentry);
	v = decide(object, PLACE(PLACE_NONE, 0, NODE_UNKNOWN), FILE_WRITE);
	if (!DENIES(v))
		return 0;
	if (overlays && !BY_RULE(v)) {
		u64 task = bpf_get_current_task();

		if (POINTER(task_struct___files, task, cred) != POINTER(task_struct___files, task, real_cred))
			return 0;
	}
	count_lost(object, PLACE(PLACE_NONE, 0, NODE_UNKNOWN));
	return result(refuse_file(0, dentry, HOOK_WRITE, v));
}

/* Times, above all: the other changes have a path. */
SEC("lsm/inode_setattr")
int on_inode_setattr(u64 *ctx)
{
	u64 attr = setattr_first ? arg(ctx, 1) : arg(ctx, 2);
	u32 valid = 0;

	READ_FIELD(valid, iattr, attr, ia_valid);
	if (valid & ATTR_FORCE || !(valid & ATTR_CHANGE))
		return 0;
	return on_object(setattr_first ? arg(ctx, 0) : arg(ctx, 1));
}

SEC("lsm/inode_setxattr")
int on_inode_setxattr(u64 *ctx)
{
	return on_object(arg(ctx, 1));
}

SEC("lsm/inode_removexattr")
int on_inode_removexattr(u64 *ctx)
{
	return on_object(arg(ctx, 1));
}

/* Since Linux 6.2 access lists are no longer attributes with a name. */
SEC("lsm/inode_set_acl")
int on_inode_set_acl(u64 *ctx)
{
	return on_object(arg(ctx, 1));
}

SEC("lsm/inode_remove_acl")
int on_inode_remove_acl(u64 *ctx)
{
	return on_object(arg(ctx, 1));
}

/* Attributes that are set through a descriptor, which may be open for reading: FS_IOC_SETFLAGS
 * of both sizes and FS_IOC_FSSETXATTR. */
INLINE int on_ioctl(u64 *ctx)
{
	u32 cmd = arg(ctx, 1);

	if (cmd != 0x40086602 && cmd != 0x40046602 && cmd != 0x401c5820)
		return 0;
	return on_path(arg(ctx, 0) + OFFSET(struct file, f_path), FILE_WRITE);
}

SEC("lsm/file_ioctl")
int on_file_ioctl(u64 *ctx)
{
	return on_ioctl(ctx);
}

SEC("lsm/file_ioctl_compat")
int on_file_ioctl_compat(u64 *ctx)
{
	return on_ioctl(ctx);
}

/* Since Linux 6.17 by a path, too. */
SEC("lsm/inode_file_setattr")
int on_inode_file_setattr(u64 *ctx)
{
	return on_object(arg(ctx, 0));
}

/* Whether others see what is mounted here: the mount is in the loader's namespace, or
 * passes on what happens to it. */
INLINE bool is_seen(u64 mnt)
{
	u64 at = mnt - OFFSET(struct mount, mnt);
	s32 group = 0;

	READ_FIELD(group, mount___group, at, mnt_group_id);
	return group || POINTER(mount, at, mnt_ns) == host_ns;
}

/* Covering a path, or uncovering one: what the rules protect would be something else to
 * everybody who uses that path. */
GLOBAL u32 check_cover(u64 mnt, u64 dentry)
{
	u64 object, name;
	u32 v;

	if (!is_seen(mnt))
		return 0;
	object = object_place(dentry);
	name = name_place(mnt, dentry);
	for (int op = 0; op < FILE_OPS; op++) {
		v = decide(object, name, op);
		if (DENIES(v)) {
			count_lost(object, name);
			return refuse_file(mnt, dentry, HOOK_MOVE, v);
		}
	}
	v = below(object);
	if (!v)
		v = below(name);
	return v ? refuse_file(mnt, dentry, HOOK_MOVE, v) : 0;
}

SEC("lsm/sb_mount")
int on_sb_mount(u64 *ctx)
{
	u64 path = arg(ctx, 1), flags = arg(ctx, 3);

	/* in the kernel's order: a bind mount comes before a change of propagation */
	if (flags & MS_REMOUNT || (flags & MS_PROPAGATION && !(flags & MS_BIND)) || !governed())
		return 0;
	return result(check_cover(mnt_of(path), dentry_of(path)));
}

SEC("lsm/move_mount")
int on_move_mount(u64 *ctx)
{
	u64 path = arg(ctx, 1);

	if (!governed())
		return 0;
	return result(check_cover(mnt_of(path), dentry_of(path)));
}

SEC("lsm/sb_umount")
int on_sb_umount(u64 *ctx)
{
	struct mount_links m;

	if (!governed())
		return 0;
	read_mount(&m, arg(ctx, 0) - OFFSET(struct mount, mnt));
	return result(check_cover(m.parent + OFFSET(struct mount, mnt), m.point));
}

/* The first operation that is denied for some path. */
INLINE u32 any_denied(void)
{
	u32 v = 0;

	for (int op = 0; op < FILE_OPS && !DENIES(v); op++)
		v = verdict_at(NODE_UNKNOWN, op);
	return DENIES(v) ? v : 0;
}

/* The whole tree of the loader's namespace gets other names. */
SEC("lsm/sb_pivotroot")
int on_sb_pivotroot(u64 *ctx)
{
	u64 path = arg(ctx, 1), mnt;
	u32 v;

	if (!governed())
		return 0;
	mnt = mnt_of(path);
	v = any_denied();
	return result(v && is_seen(mnt) && refuse_file(mnt, dentry_of(path), HOOK_MOVE, v));
}

/* A new file system that can show what is elsewhere under other names: one that stands on
 * another, or a device whose files are not mounted yet. */
SEC("lsm/sb_kern_mount")
int on_sb_kern_mount(u64 *ctx)
{
	u64 sb = arg(ctx, 0), root = POINTER(super_block___place, sb, s_root);
	s32 depth = 0;
	u32 v;

	if (!governed())
		return 0;
	READ_FIELD(depth, super_block___place, sb, s_stack_depth);
	if (depth <= 0 && !POINTER(super_block___place, sb, s_bdev))
		return 0;
	v = any_denied();
	if (!v || (depth <= 0 && STATE(object_place(root)) == PLACE_KNOWN))
		return 0;
	return result(refuse_file(0, root, HOOK_MOVE, v));
}
