/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a program of the scope opens for writing that reaches past the cgroup, or into memory. */
#ifndef RUNNER_GUARDFILE_H
#define RUNNER_GUARDFILE_H

#include "guard.h"

#define MISC_MAJOR 10

/* Is a file of /proc the memory of a process? */
INLINE bool is_memory(u64 dentry)
{
	char name[4] = {};

	bpf_probe_read_kernel(name, sizeof(name), (void *)POINTER(dentry, dentry, d_name.name));
	return name[0] == 'm' && name[1] == 'e' && name[2] == 'm' && !name[3];
}

/* Is a file system that of a user namespace below the initial one? What binfmt_misc has there (Linux 6.7) concerns only the programs of that. */
INLINE bool is_of_user_namespace(u64 inode)
{
	u64 ns = POINTER(super_block, POINTER(inode, inode, i_sb), s_user_ns);
	s32 level = 0;

	READ_FIELD(level, user_namespace, ns, level);
	return level > 0;
}

/* A file that was opened for writing, or a device. */
GLOBAL u32 guard_file(u64 file)
{
	u64 inode = POINTER(file, file, f_inode);
	u64 dentry = word(file + OFFSET(struct file, f_path) + OFFSET(struct path, dentry));
	struct kernel_file key = {};
	u32 *kind, rdev = 0;
	u16 mode = 0;

	READ_FIELD(mode, inode, inode, i_mode);
	if ((mode & S_IFMT) == S_IFCHR) {
		bool writes = file_flags(file) & O_ACCMODE;

		READ_FIELD(rdev, inode, inode, i_rdev);
		/* /dev/mem, kmem and port, and the registers of the processor */
		if (writes && (rdev == (1 << 20 | 1) || rdev == (1 << 20 | 2) || rdev == (1 << 20 | 4) || rdev >> 20 == 202))
			raise(ALARM_KERNEL, rdev);
		if (rdev >> 20 == MISC_MAJOR) /* /dev/userfaultfd has no number of its own. To use it needs no right to write to it */
			expose(present_run(), false);
		return 0;
	}
	key.magic = magic_of(inode);
	if (key.magic == BINFMT_MAGIC && is_of_user_namespace(inode))
		return 0;
	kind = bpf_map_lookup_elem(&kernel_files, &key);
	if (!kind)
		return 0;
	if (key.magic == PROC_MAGIC && is_memory(dentry))
		expose(present_run(), true);
	if (key.magic == PROC_MAGIC && raise_if_observer(task_of(POINTER(proc_inode, inode - OFFSET(struct proc_inode, vfs_inode), pid)), 0))
		return 0;
	if (!*kind) {
		bpf_probe_read_kernel_str(key.name, FILE_NAME, (void *)POINTER(dentry, dentry, d_name.name));
		kind = bpf_map_lookup_elem(&kernel_files, &key);
	}
	if (kind && *kind)
		raise(*kind, 0);
	return 0;
}

#endif
