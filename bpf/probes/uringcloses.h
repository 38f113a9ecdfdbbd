/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Requests of io_uring that close a descriptor, and so take away what another call could have put there. Most are carried out
 * at once when they are submitted. The others are kept until it is known that they are done: they complete, or the kernel uses
 * their memory again. */
#ifndef RUNNER_URINGCLOSES_H
#define RUNNER_URINGCLOSES_H

#include "changes.h"
#include "marks.h"
#include "uringtypes.h"

struct close {
	u64 table; /* 0: that of a worker, which can be any */
	u64 asked; /* when */
	s32 fd;
	u32 known; /* what it closes is known, unless something else closed that */
};

/* By their address. Those that find no room are counted as requests that are not known. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct close);
} closes SEC(".maps");

/* The descriptor that a request closes; -1 if it is one of the ring's own. */
INLINE s32 closes_fd(u64 req)
{
	u32 slot = 0;
	s32 fd = -1;

	READ(slot, (struct io_close *)req, file_slot);
	READ(fd, (struct io_close *)req, fd);
	return slot ? -1 : fd;
}

/* It will be carried out some time later. */
GLOBAL u32 note_later(u64 req, s32 fd)
{
	u64 task = bpf_get_current_task();
	struct close q = { .table = descriptors_of(task), .fd = fd };
	struct change *c = change_of(q.table, fd);
	u64 file = fd_file(fd);
	struct counters *n;
	u32 apart = times_apart();
	s64 err;

	if (apart) {
		q.table = 0;
		if (!bpf_map_update_elem(&closes, &req, &q, 1 /* BPF_NOEXIST */))
			note_giving(1);
		else if (!bpf_map_lookup_elem(&closes, &req))
			note_giving(1); /* for good */
		return 0;
	}
	if (!c || bpf_map_lookup_elem(&closes, &req))
		return 0;
	q.known = file && take_known(c, task, q.table, file);
	q.asked = bpf_ktime_get_ns();
	err = bpf_map_update_elem(&closes, &req, &q, 1 /* BPF_NOEXIST */);
	if (err == -17 /* EEXIST */)
		return 0;
	if (err) {
		n = counters_of(SLOT_URING_SUBMIT);
		if (n)
			__sync_fetch_and_add(&n->io_uring_unmapped, 1);
		set_time(&c->at, q.asked);
		set_time(&c->taken, q.asked);
		return 0;
	}
	c->closer = !__sync_fetch_and_add(&c->closers, 1) && q.known ? req : 0;
	c->asked = q.asked;
	set_time(&c->at, q.asked);
	if (!q.known)
		set_time(&c->taken, q.asked);
	return 0;
}

/* Is a request that is submitted not carried out at once? The kernel can still find out that it has to wait. */
INLINE bool is_later(u64 req, u32 flags)
{
	return flags & (ENTRY_LINKS | ENTRY_ASYNC) || POINTER(io_ring_ctx, POINTER(io_kiocb, req, ctx), submit_state.link.head);
}

/* A request to close a descriptor is submitted. */
INLINE void note_close(u64 req, bool later)
{
	u64 task = bpf_get_current_task();
	s32 fd = closes_fd(req);

	if (fd < 0)
		return;
	if (later)
		note_later(req, fd);
	else
		note_descriptor(task, descriptors_of(task), fd);
}

/* A worker will carry out a request. */
INLINE void note_queued(u64 req)
{
	u8 opcode = 0;
	s32 fd;

	READ(opcode, (struct io_kiocb *)req, opcode);
	if (opcode != OPCODE_CLOSE || !present_in_scope(SLOT_URING_SUBMIT))
		return;
	fd = closes_fd(req);
	if (fd >= 0)
		note_later(req, fd);
}

/* If this request was to close a descriptor later, that is done, at any time until now. */
GLOBAL u32 note_closed(u64 req)
{
	struct close *q = bpf_map_lookup_elem(&closes, &req);
	struct change *c;
	u64 asked;
	bool known;

	if (!q)
		return 0;
	if (!q->table) {
		if (!bpf_map_delete_elem(&closes, &req))
			note_giving(-1);
		return 0;
	}
	c = change_of(q->table, q->fd);
	asked = q->asked;
	known = q->known && c && c->at == asked && c->opened < asked;
	if (bpf_map_delete_elem(&closes, &req) || !c)
		return 0;
	set_time(&c->at, bpf_ktime_get_ns());
	if (!known)
		set_time(&c->taken, c->at);
	if (c->closer == req)
		known = __sync_val_compare_and_swap(&c->closer, req, 0) == req;
	else
		known = asked > c->closed;
	if (known)
		__sync_fetch_and_add(&c->closers, -1);
	return 0;
}

#endif
