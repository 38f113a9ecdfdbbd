/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Fields of kernel types that only file rules need. */
#ifndef RUNNER_FILESTYPES_H
#define RUNNER_FILESTYPES_H

#include "memory.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block___place {
	u64 s_magic;
	u64 s_flags;
	struct dentry *s_root;
	void *s_bdev;
	s32 s_stack_depth;
};

struct dentry___place {
	u32 d_flags;
	struct super_block___place *d_sb;
};

struct mount___group {
	s32 mnt_group_id;
};

struct task_struct___files {
	struct task_struct *real_parent;
	struct nsproxy *nsproxy;
	void *cred;
	void *real_cred;
};

struct iattr {
	u32 ia_valid;
};
#pragma clang attribute pop

INLINE u64 super_of(u64 dentry)
{
	return POINTER(dentry___place, dentry, d_sb);
}

#endif
