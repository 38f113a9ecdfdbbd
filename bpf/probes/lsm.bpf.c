//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the loader asks before it loads files.bpf.c: whether an LSM program refuses anything
 * here, and where objects are in the kernel. Each is asked by running a program in the
 * loader's own thread. */
#include "filestypes.h"
#include "walk.h"

struct learned {
	u64 inode; /* behind a descriptor, or the mount namespace */
	u64 magic; /* of its file system, or the process */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct learned);
} learned SEC(".maps");

/* The thread whose opens are refused, 0 for none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} canary SEC(".maps");

SEC("lsm/file_open")
int on_canary(u64 *ctx)
{
	u32 zero = 0;
	u64 *thread = bpf_map_lookup_elem(&canary, &zero);
	long r = 0;

	if (thread && *thread == bpf_get_current_pid_tgid())
		asm volatile("%0 = -1" : "=r"(r));
	return r;
}

SEC("raw_tp/arm")
int on_arm(u64 *ctx)
{
	u32 zero = 0;
	u64 *thread = bpf_map_lookup_elem(&canary, &zero);

	if (thread)
		*thread = ctx[0] ? bpf_get_current_pid_tgid() : 0;
	return 0;
}

/* The argument is a descriptor; without one, it is about the loader itself. */
SEC("raw_tp/learn")
int on_learn(u64 *ctx)
{
	u32 zero = 0;
	struct learned *l = bpf_map_lookup_elem(&learned, &zero);
	s32 fd = ctx[0];
	struct path_pair p;

	if (!l)
		return 1;
	if (fd < 0) {
		l->inode = POINTER(nsproxy, POINTER(task_struct___files, bpf_get_current_task(), nsproxy), mnt_ns);
		l->magic = bpf_get_current_pid_tgid() >> 32;
		return 0;
	}
	file_path(fd_file(fd), &p);
	l->inode = POINTER(dentry, p.dentry, d_inode);
	l->magic = POINTER(super_block___place, super_of(p.dentry), s_magic);
	return 0;
}
