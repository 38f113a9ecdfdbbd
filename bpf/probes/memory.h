/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How the probes read kernel memory at an address that is only a number here. */
#ifndef RUNNER_MEMORY_H
#define RUNNER_MEMORY_H

#include "settings.h"
#include "types.h"

/* Reads a field by a helper call. */
#define READ(dst, ptr, field) bpf_probe_read_kernel(&(dst), sizeof(dst), __builtin_preserve_access_index(&(ptr)->field))
#define OFFSET(type, field) __builtin_preserve_field_info(((typeof(type) *)0)->field, 0)
#define SIZE(type) __builtin_preserve_type_info(*(typeof(type) *)0, 1)
#define EXISTS(type, field) __builtin_preserve_field_info(((typeof(type) *)0)->field, 2)

/* A typed view of an address (kfunc, Linux 6.2): its fields are then read by single
 * instructions that the kernel guards, and not by one helper call each. A bad
 * address reads as 0. Only fields that are numbers are read so. */
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __attribute__((weak)) SEC(".ksyms");
#define CAN_CAST (!no_cast)
#define CAST(type, addr) ((struct type *)bpf_rdonly_cast((void *)(addr), __builtin_btf_type_id(*(struct type *)0, 1)))

/* Any kernel type that begins with a plain 64-bit number. */
struct timespec64 {
	s64 tv_sec;
} CORE;

/* Eight bytes of kernel memory as a plain number, 0 if they cannot be read. A pointer that
 * is read through its own type stays a pointer to the verifier. What may be done with it
 * differs: Linux 6.2 to 6.16 refuse arithmetic, and following it makes the verifier
 * search all kernel types by name, at every start. */
INLINE u64 word(u64 addr)
{
	u64 v;

	if (CAN_CAST)
		return CAST(timespec64, addr)->tv_sec;
	v = 0;
	bpf_probe_read_kernel(&v, sizeof(v), (void *)addr);
	return v;
}

/* A pointer field of the kernel object at an address. */
#define POINTER(type, addr, field) word((addr) + OFFSET(struct type, field))

/* A field that is a number. A field that cannot be read by a helper keeps the old value. */
#define READ_FIELD(dst, type, addr, field)                       \
	do {                                                     \
		if (CAN_CAST)                                    \
			(dst) = CAST(type, addr)->field;         \
		else                                             \
			READ(dst, (struct type *)(addr), field); \
	} while (0)

/* An argument as a plain address: the context holds typed pointers, and following
 * those makes the verifier search all kernel types by name. */
INLINE u64 address(u64 *ctx, u32 i)
{
	u64 v = 0;

	bpf_probe_read_kernel(&v, sizeof(v), ctx + i);
	return v;
}

#endif
