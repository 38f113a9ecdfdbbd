/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Network rules: the table that the loader fills, and how a refused call is recorded.
 * Only the objects that enforce include this; without rules none is loaded. */
#ifndef RUNNER_RULES_H
#define RUNNER_RULES_H

#include "hook.h"
#include "loop.h"
#include "sockaddr.h"

enum { FAMILY_ANY = 0 };
enum { PROTOCOL_TCP = 1, PROTOCOL_UDP = 2 };
enum { NAME_ALL, NAME_PATH, NAME_ABSTRACT };
enum { BPF_F_RDONLY_PROG = 1 << 7 };

#define RULE_PORTS 32
#define NAME_WORDS 14 /* a sockaddr_un, with room for the end of its path */

struct ports {
	u16 from, to;
};

struct rule {
	u32 number;   /* of the policy file's rule */
	u16 name_len; /* unix: bytes of the path, or of the abstract name with its NUL */
	u8 deny;
	u8 family;
	u8 on;	      /* HOOK_… */
	u8 protocols; /* PROTOCOL_…, 0 is all */
	u8 name_kind; /* NAME_… */
	u8 nports;    /* 0 is all */
	u32 pad;
	u64 addr[2]; /* masked; of IPv4 the first four bytes */
	u64 mask[2];
	struct ports ports[RULE_PORTS];
	u64 name[NAME_WORDS]; /* as sockaddr_un, the family zero */
	u64 name_mask[NAME_WORDS];
};

/* Entry 0 is the default. The loader sets the size, fills it and freezes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, u32);
	__type(value, struct rule);
} rules SEC(".maps");

/* How often each entry refused: counted even if the record is lost. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} blocked SEC(".maps");

const volatile u32 rule_count; /* entries after the default */

INLINE bool denies(u32 entry)
{
	struct rule *r = bpf_map_lookup_elem(&rules, &entry);

	return !r || r->deny;
}

/* Counts the refusal and sends a record of it, unless a task outside made the call. After the
 * record come alen bytes of address; size is what both take. The result makes the kernel answer EPERM. */
INLINE int refuse(struct rec *rec, u32 hook, u32 entry, u16 alen, u64 size)
{
	u64 *n = bpf_map_lookup_elem(&blocked, &entry);
	struct rule *r = bpf_map_lookup_elem(&rules, &entry);
	struct counters *c = counters_of(SLOT_RULES);

	if (n)
		__sync_fetch_and_add(n, 1);
	if (!c || foreign(c))
		return 0;
	begin(rec, OP_CONNECT_BLOCKED, 0);
	rec->source = SOURCE_CGROUP;
	rec->marks = MARK_NORET;
	rec->alen = alen;
	rec->aux1 = (u64)hook << 32 | (r ? r->number : 0);
	emit(rec, size, c, SLOT_RULES);
	return 0;
}

#endif
