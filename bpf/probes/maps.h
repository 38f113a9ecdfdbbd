/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps, and the only function that sends a record. The optional objects share
 * these maps with the base object: the loader replaces them by name. */
#ifndef RUNNER_MAPS_H
#define RUNNER_MAPS_H

#include "given.h"
#include "record.h"
#include "run.h"
#include "settings.h"
#include "types.h"

/* The last offset at which a write may begin, and room for the longest write. */
#define BLOB_LAST (2 * (UPATH_MAX + COMP_MAX) + ADDR_MAX)
#define BLOB_SIZE (BLOB_LAST + ARGS_MAX + 256)

/* The state of a path walk (walk.h). */
struct walk {
	u64 dentry;
	u64 mnt;  /* struct vfsmount */
	u64 root; /* its mnt_root */
	u64 off;
	u64 end;
	u32 marks;
	u32 done;
	u32 crossed; /* it has left the mount where it began */
	u64 changes, way; /* how often what it passed was renamed, and which that was */
};

/* The same way once more, to see whether it is the same (walk.h). */
struct way {
	u64 dentry, mnt, root, changes, way;
	u64 done; /* it has come to its end */
};

/* What a socket call is given (socketcalls.h). */
struct send {
	u64 name, packet, len;
	u64 head, iov; /* where its header and its first piece are told of, if they are */
	u32 namelen, flags;
	u32 later;   /* not the call's first message */
	u32 unknown; /* what it was given can have changed, and was not kept */
	u64 vec, end; /* the messages of sendmmsg, whose lengths the kernel writes there */
};

/* The request of io_uring that is told (uringtell.h). */
struct told {
	u64 req;
	u32 place; /* among the requests that are being built */
	u32 how;
	u32 kept; /* it is among those that are kept, and not in that place */
	u32 pad;
	struct path_pair base; /* where a name of it starts now */
	u64 head[27];	       /* the request itself without its texts */
};

/* Memory of one process alone, or of a file (others.h). */
struct alone {
	u64 memory, from, end;
	u64 at; /* when that was found, in ticks */
	u32 changes;
	u32 of_file;
};

/* The socket of a call (sockets.h). */
struct kind {
	u64 sk;
	u16 family, type, protocol;
	u16 changed; /* another thread changed the descriptor under the call: then sk is none */
	/* What follows from these. It is found out once: a verifier follows each of the questions in each way that leads to it. */
	u8 inet;   /* IPv4 or IPv6 */
	u8 udp;    /* of these */
	u8 header; /* what is sent begins with an IP header of the program's own */
	u8 pad[5];
};

/* What is used by each call comes first, and the text of the record last: most records touch one page of this. */
struct scratch {
	u64 task;	  /* the task, for programs at calls (kernel.bpf.c) */
	u64 args[8];	  /* of the call that the record is about, its arguments */
	u32 call;	  /* its number (pathobj.h) */
	u32 pad;
	struct given given; /* and what is kept of them */
	struct alone alone;
	struct way again;
	struct walk walk;
	struct send send;
	struct kind kind;
	struct told told;
	struct rec r; /* with what follows, the record that is sent */
	u8 blob[BLOB_SIZE];
} __attribute__((aligned(4096)));

#ifndef SHARED
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} scope SEC(".maps");
#endif

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RUNS * SLOTS);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

/* One scratch record per CPU and program, and for each copy of one: a program that was preempted
 * must not find another program's bytes when it continues. The loader sets the size. A
 * per-CPU map cannot hold values this large. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

/* Records lost because the ring was full, by operation. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNS * OPS);
	__type(key, u32);
	__type(value, u64);
} drops SEC(".maps");

#ifndef SHARED
/* The processes that the capture itself started, by process id, and when: the kernel gives a capture
 * that is the first process of its pid namespace others as children too. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u64);
} own_children SEC(".maps");

/* Set by the loader before the load. */
const volatile u64 scope_cgroup_id;
#endif
const volatile u32 ncpus = 1;

#ifdef SHARED
INLINE struct counters *counters_in(u32 run, u32 slot)
{
	u32 key = (run - 1) * SLOTS + slot;
	struct counters *c = run ? bpf_map_lookup_elem(&counters, &key) : NULL;

	if (c)
		c->run = run;
	return c;
}

INLINE void *ring_of(struct counters *c)
{
	u32 key = c->run - 1;

	return bpf_map_lookup_elem(&rings, &key);
}

INLINE u64 *drops_of(struct counters *c, u32 op)
{
	u32 key = (c->run - 1) * OPS + op;

	return bpf_map_lookup_elem(&drops, &key);
}

INLINE u32 run_of_counters(struct counters *c)
{
	return c->run;
}

/* Those of the run that a program is attached for: at a cgroup, where it can be preempted. */
#define counters_of_hook(slot)                                                     \
	({                                                                         \
		u64 *_run = bpf_get_local_storage(&hooked_run, 0);                 \
		counters_in(*_run, slot);                                          \
	})
#else
INLINE struct counters *counters_in(u32 run, u32 slot)
{
	return bpf_map_lookup_elem(&counters, &slot);
}

INLINE u32 run_of_counters(struct counters *c)
{
	return 1;
}

#define ring_of(c) ((void *)&events)

INLINE u64 *drops_of(struct counters *c, u32 op)
{
	return bpf_map_lookup_elem(&drops, &op);
}

#define counters_of_hook(slot) counters_of(slot)
#endif

/* The counters of a program, and of the run whose event it is at. */
INLINE struct counters *counters_of(u32 slot)
{
	return counters_in(run_at(slot), slot);
}

/* Where a program builds its records. Each of its copies has one: a record is large, and a machine can have many CPUs. */
INLINE u32 scratch_key(u32 of_copy, u32 index)
{
	u32 record = index;

	if (copied_tasks || copied_calls) {
		record = index < SCRATCH_ENTER ? index * PROBE_COPIES : SCRATCH_ENTER * PROBE_COPIES + (index - SCRATCH_ENTER) * SMALL_COPIES;
		record += of_copy;
	}
	return record * ncpus + bpf_get_smp_processor_id();
}

INLINE struct scratch *scratch_at(u32 key)
{
	return bpf_map_lookup_elem(&scratch, &key);
}

/* Begins a record of a task of which these are known: a helper call for each costs more than to read them. It has no time yet. */
INLINE void begin_of(struct rec *r, u16 op, s64 ret, u32 tgid, u32 tid, u64 cgid)
{
	__builtin_memset(r, 0, sizeof(*r));
	r->op = op;
	r->ret = ret;
	r->cgid = cgid;
	r->tgid = tgid;
	r->tid = tid;
	r->cpu = bpf_get_smp_processor_id();
}

INLINE void begin(struct rec *r, u16 op, s64 ret)
{
	u64 id = bpf_get_current_pid_tgid();

	begin_of(r, op, ret, id >> 32, id, bpf_get_current_cgroup_id());
	r->ktime = bpf_ktime_get_ns();
}

/* Adds one and returns what was there before. Alone: nobody else counts there. */
INLINE u64 count_one(u64 *n, bool alone)
{
	if (!alone)
		return __sync_fetch_and_add(n, 1);
	return (*(volatile u64 *)n)++;
}

/* Is it time to wake the reader? To do that for each record would cost more than all other work, and a reader that is woken
 * early takes a processor from the measured program for little. So it polls, and every 256th record of a CPU wakes it
 * if an eighth of the ring waits. */
INLINE bool wakes(void *ring, u64 n)
{
	return (n & 255) == 255 && bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >= bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / 8;
}

/* All records are sent here, so that seen == emitted + dropped always holds. The increments are atomic
 * because some programs can be preempted. Alone: this is the only program of its slot, which the kernel lets run
 * once at a time on a CPU. A program stays on its CPU: no other record has the same slot, cpu and seq. */
INLINE void emit_as(struct rec *r, u64 size, struct counters *c, u8 slot, bool alone)
{
	u64 n, flags = BPF_RB_NO_WAKEUP;
	void *ring = ring_of(c);

	r->len = size;
	r->probe = slot;
	n = count_one(&c->seen, alone);
	r->seq = n;
	if (ring && wakes(ring, n))
		flags = BPF_RB_FORCE_WAKEUP;
	if (ring && bpf_ringbuf_output(ring, r, size, flags) == 0) {
		count_one(&c->emitted, alone);
	} else {
		u64 *by_op = drops_of(c, r->op);

		count_one(&c->dropped, alone);
		if (by_op)
			__sync_fetch_and_add(by_op, 1);
	}
}

INLINE void emit(struct rec *r, u64 size, struct counters *c, u8 slot)
{
	emit_as(r, size, c, slot, false);
}

/* Sends the record of a scratch record, with so many bytes after it. A function of its own, because most programs send more than one:
 * what a kernel does with a program before it runs takes more than twice as long for one twice as large. */
GLOBAL u32 send_record(struct scratch *s, u64 len, struct counters *c, u32 slot)
{
	if (!s || !c)
		return 0;
	BARRIER(len);
	if (len > BLOB_LAST + ARGS_MAX)
		len = BLOB_LAST;
	emit(&s->r, REC_SIZE + len, c, slot);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";

#endif
