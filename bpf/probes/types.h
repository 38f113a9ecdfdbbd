/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The few fields of kernel types that the probes read. CO-RE matches them by
 * name at load time, so order and gaps here mean nothing. */
#ifndef RUNNER_TYPES_H
#define RUNNER_TYPES_H

#include "helpers.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r10, r9, r8, ax, dx, si, di, orig_ax, bx, cx, bp, ip, sp;
};
struct thread_info {
	u32 status;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 orig_x0;
	s32 syscallno;
};
struct thread_info {
	unsigned long flags;
};
#else
#error "no register layout for this target"
#endif

struct qstr {
	u32 len;
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct counter32 {
	s32 counter;
};

struct super_block {
	unsigned long s_flags;
	unsigned long s_magic;
	struct user_namespace *s_user_ns;
};

struct inode {
	u16 i_mode;
	u32 i_rdev;
	struct counter32 i_writecount;
	struct super_block *i_sb;
	void *i_private;
};

/* A count of the changes of something: since Linux 6.14 of the mappings of memory, too. */
struct seqcount {
	u32 sequence;
};

struct seqcount_of_lock {
	struct seqcount seqcount;
};

struct dentry {
	struct seqcount_of_lock d_seq; /* of its name and parent */
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct ns_common {
	u32 inum;
};

struct mnt_namespace {
	struct ns_common ns;
	struct mount *root;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct mnt_namespace *mnt_ns;
	const char *mnt_devname;
};

struct file_system_type {
	const char *name;
};

struct fs_context {
	struct file_system_type *fs_type;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct counter64 {
	s64 counter;
};

struct file_ref {
	struct counter64 refcnt;
};

struct file {
	u32 f_mode;
	u32 f_flags;
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

/* How often a file is held has two forms. Structs with a form in their name (NAME___FORM) are alternatives:
 * each kernel has one of them. */
struct file___count { /* until Linux 6.12 */
	struct counter64 f_count;
};

struct file___ref { /* since then; the stored value is one less */
	struct file_ref f_ref;
};

struct sigaction {
	void *sa_handler;
	unsigned long sa_flags;
};

struct k_sigaction {
	struct sigaction sa;
};

struct fdtable {
	u32 max_fds;
	struct file **fd;
};

struct files_struct {
	struct counter32 count;
	struct fdtable *fdt;
};

struct fs_struct {
	s32 users;
	struct path root;
	struct path pwd;
};

struct kernfs_node {
	u64 id;
};

struct cgroup;
struct cgroup_root;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct list_head {
	struct list_head *next;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

/* Where numbers lead, in a tree of nodes. */
struct xa_node {
	u8 shift;
	void *slots[64];
};

struct xarray {
	void *xa_head; /* a node, if its two lowest bits are 2 */
};

struct idr {
	struct xarray idr_rt;
};

struct pid_namespace {
	struct ns_common ns;
	struct idr idr;
};

/* A number that a task has in a pid namespace. */
struct upid {
	s32 nr;
	struct pid_namespace *ns;
};

struct pid {
	u32 level; /* of its own namespace below the initial one, which has level 0 */
	struct hlist_head tasks[4]; /* the first: by thread */
	struct upid numbers[1]; /* by level */
};

struct proc_inode {
	struct pid *pid;
	struct inode vfs_inode;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct kernel_id {
	u32 val;
};

struct kernel_capabilities {
	u64 val; /* until Linux 6.2 two numbers of half the size */
};

struct user_namespace {
	s32 level; /* 0 is the initial one */
};

struct cred {
	struct kernel_id euid, egid, fsuid;
	struct kernel_capabilities cap_effective;
	struct user_namespace *user_ns;
};

struct bpf_prog_aux {
	u32 id;
};

enum bpf_prog_type { BPF_PROG_TYPE_UNSPEC };

struct bpf_prog {
	enum bpf_prog_type type;
	struct bpf_prog_aux *aux;
};

struct bpf_map {
	u32 id;
};

struct bpf_link {
	u32 id;
};

struct mm_struct {
	struct counter32 mm_users;
	unsigned long arg_start, arg_end;
	unsigned long saved_auxv[1];
};

/* A file in memory. */
struct shmem_inode_info {
	unsigned int seals;
	struct inode vfs_inode;
};

struct mm_struct___counted {
	struct seqcount mm_lock_seq;
};

struct vm_area_struct {
	unsigned long vm_end;
	unsigned long vm_flags;
	struct file *vm_file;
};

/* A file of a layer that a stacked file system opened: since Linux 6.8 with the path that the program used. */
struct backing_file___later {
	struct path user_path;
};

struct signal_struct {
	struct pid *pids[4]; /* Linux 4.19: of the process, its group and its session, by enum pid_type */
};

struct task_struct {
	struct thread_info thread_info;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	u32 flags;
	s32 pid;
	s32 tgid;
	s32 exit_code;
	struct task_struct *real_parent;
	struct list_head ptraced;
	struct list_head ptrace_entry;
	struct pid *thread_pid;
	struct hlist_node pid_links[4];
	u64 start_boottime;
	u64 self_exec_id;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct nsproxy *nsproxy;
	const struct cred *cred;
	struct css_set *cgroups;
	void *bpf_storage;
};

struct task_struct___rings { /* not of kernels without io_uring */
	void *io_uring;
};

struct linux_binprm {
	struct file *file;
	const char *filename;
	const char *interp;
	const char *fdpath;
};

struct in6_addr {
	u8 in6_u[16];
};

struct sock_common {
	u32 skc_daddr, skc_rcv_saddr;
	u16 skc_dport, skc_num;
	u16 skc_family;
	u8 skc_state;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
	struct counter64 skc_cookie;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_type, sk_protocol;
	s32 sk_err;
	struct sock_cgroup_data sk_cgrp_data;
};

struct flowi_common {
	u8 flowic_proto;
};

struct flowi4 {
	u32 daddr;
};

struct flowi {
	union {
		struct flowi_common __fl_common;
		struct flowi4 ip4;
	} u;
};

struct inet_cork_full {
	struct flowi fl;
};

struct inet_sock {
	struct inet_cork_full cork;
};

struct inet_sock___bits { /* until Linux 6.6 */
	u8 hdrincl : 1;
};

struct inet_sock___flags {
	unsigned long inet_flags;
};

struct socket {
	struct sock *sk;
};

struct sockaddr_un {
	u16 sun_family;
};

struct unix_address {
	s32 len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct path path;
	struct sock *peer;
};

struct filename {
	const char *name;
};

#pragma clang attribute pop

/* What user space uses: fixed ABI, no relocation. */
enum {
	AT_BASE = 7,  /* of the auxiliary vector: where the loader is */
	AT_ENTRY = 9, /* where the program starts */
	FMODE_WRITE = 1 << 1, /* include/linux/fs.h */
	FMODE_BACKING = 1 << 25,
	AT_FDCWD = -100,
	AT_REMOVEDIR = 0x200,
	AT_EMPTY_PATH = 0x1000,
	O_ACCMODE = 3,
	O_CREAT = 0100,
	O_EXCL = 0200,
	O_NOCTTY = 0400,
	O_TRUNC = 01000,
	O_DSYNC = 010000,
	O_ASYNC = 020000,
	O_CLOEXEC = 02000000,
	O_SYNC_ONLY = 04000000,
	O_TMPFILE_ONLY = 020000000,
	OPEN_FLAGS = 037777777,
#if defined(__TARGET_ARCH_x86)
	O_LARGEFILE = 0100000,
#else
	O_LARGEFILE = 0400000,
#endif
	FMODE_CREATED = 0x100000,
	O_PATH = 0x200000,
	CREAT_FLAGS = 0x241, /* O_CREAT | O_WRONLY | O_TRUNC: the flags that creat implies */
	ENAMETOOLONG = 36,
	ENOSYS = 38,
	NAME_MAX = 255,
	RESOLVE_IN_ROOT = 0x10,
	EINPROGRESS = 115,
	AT_EXECVE_CHECK = 0x10000,
	S_IFMT = 0170000,
	S_IFCHR = 0020000,
	S_IFREG = 0100000,
	S_IFSOCK = 0140000,
	PROC_MAGIC = 0x9fa0,
	BINFMT_MAGIC = 0x42494e4d,
	TMPFS_MAGIC = 0x01021994,
	NSFS_MAGIC = 0x6e736673,
	PIDFS_MAGIC = 0x50494446,
};

struct user_open_how {
	u64 flags, mode, resolve;
};

/* The beginning of a struct msghdr: of the rest nothing is read, and the stack is small. */
struct user_msghdr {
	u64 name;
	u32 namelen, pad;
	u64 iov, iovlen;
	u64 control, controllen;
};

struct user_cmsghdr {
	u64 len;
	s32 level, type;
};

/* Those of 32-bit programs. */
struct user_msghdr32 {
	u32 name, namelen, iov, iovlen, control, controllen;
};

struct user_cmsghdr32 {
	u32 len;
	s32 level, type;
};

struct user_iovec {
	u64 base, len;
};

enum { MMSGHDR_SIZE = 64 };

#endif
