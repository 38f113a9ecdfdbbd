/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the probes need of the compiler and of the kernel's helpers. The helper
 * numbers are kernel ABI (include/uapi/linux/bpf.h). */
#ifndef RUNNER_HELPERS_H
#define RUNNER_HELPERS_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
#define true 1
#define false 0

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define __array(name, val) typeof(val) *name[]
/* The verifier checks such a function once and not at each call; otherwise the branches
 * of a path walk would multiply. Its arguments are plain numbers. */
#define GLOBAL __attribute__((noinline))
#define CORE __attribute__((preserve_access_index))
#define NULL ((void *)0)

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_CGROUP_STORAGE = 19,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *val, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static long (*bpf_tail_call)(void *ctx, void *programs, u32 index) = (void *)12;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static u64 (*bpf_get_current_task)(void) = (void *)35;
static long (*bpf_current_task_under_cgroup)(void *map, u32 index) = (void *)37;
static u64 (*bpf_get_socket_cookie)(void *ctx) = (void *)46;
static void *(*bpf_get_local_storage)(void *map, u64 flags) = (void *)81;
static u64 (*bpf_get_current_cgroup_id)(void) = (void *)80;
static long (*bpf_probe_read_user)(void *dst, u32 size, const void *src) = (void *)112;
static long (*bpf_probe_read_kernel)(void *dst, u32 size, const void *src) = (void *)113;
static long (*bpf_probe_read_user_str)(void *dst, u32 size, const void *src) = (void *)114;
static long (*bpf_probe_read_kernel_str)(void *dst, u32 size, const void *src) = (void *)115;
static u64 (*bpf_jiffies64)(void) = (void *)118;
static long (*bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static u64 (*bpf_ringbuf_query)(void *ring, u64 what) = (void *)134;
static void *(*bpf_task_storage_get)(void *map, void *task, void *value, u64 flags) = (void *)156;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;
static long (*bpf_for_each_map_elem)(void *map, void *fn, void *ctx, u64 flags) = (void *)164;
static long (*bpf_find_vma)(struct task_struct *task, u64 addr, void *fn, void *ctx, u64 flags) = (void *)180;
static long (*bpf_loop)(u32 n, void *fn, void *ctx, u64 flags) = (void *)181;

/* Keeps the compiler from narrowing a 64-bit bound that the verifier must see. */
#define BARRIER(x) asm volatile("" : "+r"(x))

/* Makes a verifier forget what a number is: it would follow each value that is known here as a way of its own to the end of the
 * program. SOME is any number that it does not know. */
#define FORGET(x, some)                             \
	do {                                        \
		typeof(x) _some = (typeof(x))(some); \
		BARRIER(_some);                     \
		(x) ^= _some;                       \
		BARRIER(x);                         \
		(x) ^= _some;                       \
		BARRIER(x);                         \
	} while (0)

#endif
