//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Network rules for unix sockets (Linux 6.7). The hook gets only the name as the program
 * wrote it. It knows neither the working directory nor where symlinks lead. A path that is
 * not absolute and clean could be any path, so every rule that denies a path applies to
 * it, and no rule that allows one. */
#include "rules.h"

struct unix_ask {
	struct rec r;
	u8 addr[8 * NAME_WORDS];
	u32 hook;
	u32 found;
	u16 len; /* of the name */
	u8 kind;
	u8 opaque;
	u32 part; /* of a component so far: nothing, one dot, two, something else */
};

enum { PART_NONE, PART_DOT, PART_DOTS, PART_NAME };

/* Looks at one byte of a path. */
static long clean_step(u32 i, struct unix_ask *a)
{
	u8 c;

	if (i >= 108)
		return 1;
	c = a->addr[2 + i];
	if (c && c != '/') {
		a->part = c != '.' || a->part >= PART_DOTS ? PART_NAME : a->part + 1;
		return 0;
	}
	if (a->part == PART_DOT || a->part == PART_DOTS || (c && i && a->part == PART_NONE))
		a->opaque = 1;
	a->part = PART_NONE;
	return !c;
}

INLINE bool same_name(struct rule *r, struct unix_ask *a)
{
	u64 *name = (u64 *)a->addr;
	u64 differ = 0;
	u32 end;

#pragma unroll
	for (int i = 0; i < NAME_WORDS; i++)
		differ |= (name[i] & r->name_mask[i]) ^ r->name[i];
	if (differ)
		return false;
	if (r->name_kind == NAME_ABSTRACT)
		return a->len == r->name_len;
	end = 2 + r->name_len;
	if (end >= sizeof(a->addr))
		return false;
	return !a->addr[end] || a->addr[end] == '/';
}

static long unix_step(u32 i, struct unix_ask *a)
{
	u32 key = i + 1;
	struct rule *r = bpf_map_lookup_elem(&rules, &key);

	if (!r)
		return 1;
	if (!(r->on & a->hook) || r->nports || r->protocols)
		return 0; /* unix sockets have neither */
	if (r->family != FAMILY_ANY && r->family != FAMILY_UNIX)
		return 0;
	if (r->family == FAMILY_UNIX && r->name_kind != NAME_ALL) {
		if (r->name_kind != a->kind)
			return 0;
		if (a->opaque ? !r->deny : !same_name(r, a))
			return 0;
	}
	a->found = key;
	return 1;
}

INLINE int unix_hook(void *ctx, u32 hook)
{
	u64 k = (u64)bpf_cast_to_kern_ctx(ctx), len;
	struct unix_ask a;
	u32 size = 0;

	__builtin_memset(&a, 0, sizeof(a));
	a.hook = hook;
	READ_FIELD(size, bpf_sock_addr_kern, k, uaddrlen);
	len = size;
	if (len > 110)
		len = 110;
	BARRIER(len);
	len &= 127;
	if (len > 110)
		len = 110;
	a.kind = NAME_PATH;
	if (len < 2 || bpf_probe_read_kernel(a.addr, len, (void *)POINTER(bpf_sock_addr_kern, k, uaddr))) {
		a.opaque = 1;
		len = 2;
	} else if (!a.addr[2]) {
		a.kind = NAME_ABSTRACT;
	} else {
		a.opaque = a.addr[2] != '/';
		/* /proc has links that lead anywhere */
		if (a.addr[3] == 'p' && a.addr[4] == 'r' && a.addr[5] == 'o' && a.addr[6] == 'c' && a.addr[7] == '/')
			a.opaque = 1;
		bpf_loop(109, clean_step, &a, 0);
	}
	a.len = len - 2;
	bpf_loop(rule_count, unix_step, &a, 0);
	if (!denies(a.found))
		return 1;
	return refuse(&a.r, hook, a.found, len, REC_SIZE + sizeof(a.addr));
}

SEC("cgroup/connect_unix")
int rule_connect_unix(struct bpf_sock_addr *ctx)
{
	return unix_hook(ctx, HOOK_CONNECT);
}

SEC("cgroup/sendmsg_unix")
int rule_sendmsg_unix(struct bpf_sock_addr *ctx)
{
	return unix_hook(ctx, HOOK_SEND);
}
