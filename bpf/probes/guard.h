/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a program of the scope does to the measurement itself. Root can do it from inside of
 * the cgroup, so it must at least be told: each attempt that succeeds is an alarm.
 *
 * An alarm cannot be taken back. Its ring is never consumed, and it is frozen: then the kernel
 * gives nobody a way to change its data or its producer position, not even with bpf(). */
#ifndef RUNNER_GUARD_H
#define RUNNER_GUARD_H

#include "exposed.h"
#include "scope.h"
#include "walk.h"

/* Types of programs that can change what other programs see or do, by enum bpf_prog_type:
 * kprobe, tracepoint, perf_event, cgroup_sock, raw_tracepoint (also writable), cgroup_sock_addr,
 * tracing, struct_ops, ext, lsm, syscall. */
#define CHANGING_PROGS (1ULL << 2 | 1ULL << 5 | 1ULL << 7 | 1ULL << 9 | 1ULL << 17 | 1ULL << 24 | 1ULL << 18 | \
			1ULL << 26 | 1ULL << 27 | 1ULL << 28 | 1ULL << 29 | 1ULL << 31)

/* Kinds of alarms; ../guard_linux.go names them. */
enum alarm_kind {
	ALARM_NONE,
	ALARM_BPF,    /* got hold of the capture's own BPF objects, or of a program that can change what it sees */
	ALARM_TRACE,  /* got hold of a process of the runner: its memory, registers or descriptors */
	ALARM_REACH,  /* wrote into the memory of the process number: user space knows whose that is */
	ALARM_SIGNAL, /* sent a process of the runner a signal that stops or ends it */
	ALARM_MOVE,   /* moved a process of the runner to another cgroup */
	ALARM_KERNEL, /* reached the kernel: a module, kexec, its memory, ports */
	ALARM_HELPER, /* named a program that the kernel starts outside of the cgroup */
	ALARM_UNSEEN, /* opened something for writing that nobody could look at, with rights over all of these */
	ALARM_KINDS,
};

struct alarm {
	u32 kind;
	u32 tgid; /* who did it */
	s32 number;
	u32 copy; /* which copy of the probe says it: others can say the same */
};

#ifdef SHARED
/* Of each run, how many of each kind, and the last process numbers that were reached. Nobody can write here but the programs: the
 * map is frozen. A run reads what came since it began. */
#define REACHED 512
struct alarms_of_run {
	u64 of[ALARM_KINDS];
	s32 reached[REACHED];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNS);
	__type(key, u32);
	__type(value, struct alarms_of_run);
} alarms SEC(".maps");

/* How often a program of any run got hold of what all of them share. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} touched SEC(".maps");
#else
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} alarms SEC(".maps");
#endif

/* The capture's own objects: 1 << 32, 2 << 32 or 3 << 32 for a program, map or link, and
 * its id. The loader fills it and freezes it. */
enum { OBJECT_PROG = 1, OBJECT_MAP, OBJECT_LINK };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512 + 16 * RUNS);
	__type(key, u64);
	__type(value, u32);
} own_objects SEC(".maps");

/* Files that reach past the cgroup when they are written: the kind of the alarm by file
 * system and name. Of each file system there is an entry without a name too; with a kind,
 * it means all of its files. The loader fills it and freezes it. */
#define FILE_NAME 28
struct kernel_file {
	u32 magic;
	char name[FILE_NAME];
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct kernel_file);
	__type(value, u32);
} kernel_files SEC(".maps");

/* Processes whose memory was written by number, and by whom: one alarm for each. */
struct reach {
	s32 number;
	u32 run;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512 * (RUNS > 1 ? 8 : 1));
	__type(key, struct reach);
	__type(value, u32);
} reached SEC(".maps");

/* The processes of the runner, as the first pid namespace numbers them: the capture, and
 * runner-exec or 0, each with its children. */
#ifdef SHARED
INLINE u32 capture_of(u32 run)
{
	struct run *r = the_run(run);

	return r ? r->capture_tgid : 0;
}

INLINE u32 supervisor_of(u32 run)
{
	struct run *r = the_run(run);

	return r ? r->supervisor_tgid : 0;
}

/* The run of the present task; 0 if it has none. */
INLINE u32 present_run(void)
{
	return run_of_id(present_cgroup(bpf_get_current_task()));
}

static long raise_in(u32 i, struct alarm *a)
{
	struct run *r = bpf_map_lookup_elem(&runs, &i);
	struct alarms_of_run *of = bpf_map_lookup_elem(&alarms, &i);
	u64 n;

	if (!r || !r->cgroup_id || !of || a->kind >= ALARM_KINDS)
		return 0;
	n = __sync_fetch_and_add(&of->of[a->kind], 1);
	if (a->kind == ALARM_REACH)
		of->reached[n & (REACHED - 1)] = a->number;
	return 0;
}

/* Tells the run of the present task. If it has none, it acts for a run that is not known: then it tells all of them. */
GLOBAL u32 raise(u32 kind, s32 number)
{
	struct alarm a = { .kind = kind, .tgid = bpf_get_current_pid_tgid() >> 32, .number = number };
	u32 run = present_run();

	if (run)
		raise_in(run - 1, &a);
	else
		bpf_loop(RUNS, raise_in, &a, 0);
	return 0;
}

/* What all runs share is in the hands of a program: that concerns each of them. */
INLINE void note_touched(void)
{
	u32 zero = 0;
	u64 *n = bpf_map_lookup_elem(&touched, &zero);

	if (n)
		__sync_fetch_and_add(n, 1);
}

INLINE void raise_own_object(u32 id)
{
	note_touched();
	raise(ALARM_BPF, id);
}
#else
/* Set by the loader before the load. */
const volatile u32 capture_tgid;
const volatile u32 supervisor_tgid;

INLINE u32 capture_of(u32 run)
{
	return capture_tgid;
}

INLINE u32 supervisor_of(u32 run)
{
	return supervisor_tgid;
}

INLINE u32 present_run(void)
{
	return 1;
}

INLINE void raise(u32 kind, s32 number)
{
	struct alarm a = { .kind = kind, .tgid = bpf_get_current_pid_tgid() >> 32, .number = number, .copy = copy };

	bpf_ringbuf_output(&alarms, &a, sizeof(a), 0);
}

INLINE void raise_own_object(u32 id)
{
	raise(ALARM_BPF, id);
}
#endif

INLINE u32 tgid_of(u64 task)
{
	s32 tgid = 0;

	READ_FIELD(tgid, task_struct, task, tgid);
	return tgid;
}

/* Is a task the runner's, of this run? */
GLOBAL u32 observer(u64 task, u32 run)
{
	u32 tgid, capture = capture_of(run), supervisor = supervisor_of(run);

	if (!task || !capture)
		return 0;
	tgid = tgid_of(task);
	if (tgid == capture || (supervisor && tgid == supervisor))
		return 1;
	if (!supervisor)
		return 0;
	tgid = tgid_of(POINTER(task_struct, task, real_parent));
	if (tgid != supervisor && tgid != capture)
		return 0;
	return !in_scope(cgroup_of(task), run);
}

#ifdef SHARED
struct sought {
	u32 tgid;
	u32 found;
};

static long is_capture_of(u32 i, struct sought *o)
{
	struct run *r = bpf_map_lookup_elem(&runs, &i);

	if (!r || !r->cgroup_id || r->capture_tgid != o->tgid)
		return 0;
	o->found = 1;
	return 1;
}

/* Is a task the capture of any run? Each holds what all of them share. */
GLOBAL u32 is_capture(u64 task)
{
	struct sought o = {};

	if (!task)
		return 0;
	o.tgid = tgid_of(task);
	bpf_loop(RUNS, is_capture_of, &o, 0);
	return o.found;
}
#endif

/* A program of the scope got hold of a task: is that one of the runner? */
INLINE bool raise_if_observer(u64 task, s32 number)
{
#ifdef SHARED
	if (is_capture(task)) {
		note_touched();
		raise(ALARM_TRACE, number);
		return true;
	}
#endif
	if (!observer(task, present_run()))
		return false;
	raise(ALARM_TRACE, number);
	return true;
}

/* The task of a struct pid. */
INLINE u64 task_of(u64 pid)
{
	u64 node = pid ? POINTER(pid, pid, tasks) : 0;

	return node ? node - OFFSET(struct task_struct, pid_links) : 0;
}

/* What a descriptor of a BPF object is of, by the name of its file: bpf-prog, bpf-map, or bpf_link. */
INLINE u32 kind_of_object(u64 file)
{
	u64 dentry = word(file + OFFSET(struct file, f_path) + OFFSET(struct path, dentry));
	char name[8] = {};

	bpf_probe_read_kernel(name, sizeof(name) - 1, (void *)POINTER(dentry, dentry, d_name.name));
	if (name[0] != 'b' || name[1] != 'p' || name[2] != 'f')
		return 0;
	return name[4] == 'p' ? OBJECT_PROG : name[4] == 'm' ? OBJECT_MAP : name[4] == 'l' ? OBJECT_LINK : 0;
}

#ifdef SHARED
enum { TREE_LEVELS = 6 };

/* The task that has a number for the present one, which is not in more pid namespaces than MAX_PID_NS_LEVEL. */
GLOBAL u64 task_of_number(u32 number)
{
	u64 ids = POINTER(task_struct, bpf_get_current_task(), thread_pid), at;
	u32 level = 0;
	u8 shift = 0;

	READ_FIELD(level, pid, ids, level);
	if (level > 32)
		return 0;
	at = POINTER(upid, ids + OFFSET(struct pid, numbers) + level * SIZE(struct upid), ns);
	at = POINTER(pid_namespace, at, idr.idr_rt.xa_head);
	for (int i = 0; i < TREE_LEVELS && (at & 3) == 2; i++) {
		at -= 2;
		READ_FIELD(shift, xa_node, at, shift);
		at = word(at + OFFSET(struct xa_node, slots) + (number >> (shift & 31) & 63) * sizeof(u64));
	}
	return at & 3 ? 0 : task_of(at);
}
#endif

/* A call that returned a descriptor of a BPF object. */
INLINE void guard_bpf(u32 cmd, s64 fd)
{
	u64 object, key = 0, file;
	u32 id = 0, type = 0, kind;

	if (fd < 0)
		return;
	file = fd_file(fd);
	object = file ? POINTER(file, file, private_data) : 0;
	if (!object)
		return;
	switch (cmd) {
	case 5: /* BPF_PROG_LOAD */
	case 13: /* BPF_PROG_GET_FD_BY_ID */
		kind = OBJECT_PROG;
		break;
	case 14: /* BPF_MAP_GET_FD_BY_ID */
		kind = OBJECT_MAP;
		break;
	case 30: /* BPF_LINK_GET_FD_BY_ID */
		kind = OBJECT_LINK;
		break;
	case 7: /* BPF_OBJ_GET */
		kind = kind_of_object(file);
		break;
	default:
		return;
	}
	if (kind == OBJECT_PROG) {
		READ_FIELD(type, bpf_prog, object, type);
		if (type < 64 && (CHANGING_PROGS >> type & 1)) {
			raise(ALARM_BPF, type);
			return;
		}
		READ_FIELD(id, bpf_prog_aux, POINTER(bpf_prog, object, aux), id);
	} else if (kind == OBJECT_MAP) {
		READ_FIELD(id, bpf_map, object, id);
	} else if (kind == OBJECT_LINK) {
		READ_FIELD(id, bpf_link, object, id);
	} else {
		return;
	}
	key = kind;
	key = key << 32 | id;
	if (bpf_map_lookup_elem(&own_objects, &key))
		raise_own_object(id);
}

/* Requests of ptrace that write memory. */
enum { PTRACE_POKETEXT = 4, PTRACE_POKEDATA = 5 };

/* PTRACE_ATTACH and PTRACE_SEIZE put the new tracee first. */
INLINE void guard_ptrace(u64 request, s64 ret)
{
	u64 task = bpf_get_current_task(), first;

	if (ret || (request != 16 && request != 0x4206))
		return;
	first = word(task + OFFSET(struct task_struct, ptraced));
	if (first && first != task + OFFSET(struct task_struct, ptraced))
		raise_if_observer(first - OFFSET(struct task_struct, ptrace_entry), request);
}

INLINE void guard_reach(s32 number, s64 ret)
{
	struct reach who = { .number = number, .run = present_run() };
	u32 one = 1;

#ifdef SHARED
	if (ret > 0 && is_capture(task_of_number(number))) {
		note_touched();
		raise(ALARM_TRACE, number);
		return;
	}
#endif
	if (ret > 0 && bpf_map_update_elem(&reached, &who, &one, 1 /* BPF_NOEXIST */) != -17 /* EEXIST */)
		raise(ALARM_REACH, number);
}

/* The struct pid of a pidfd: since Linux 6.9 of its inode. */
INLINE u64 pid_of(u64 file)
{
	u64 inode = POINTER(file, file, f_inode);

	if (magic_of(inode) == PIDFS_MAGIC)
		return POINTER(inode, inode, i_private);
	return POINTER(file, file, private_data);
}

/* Descriptors that came from other processes. */
INLINE void note_received(struct counters *c, u64 n)
{
	if (c && n)
		__sync_fetch_and_add(&c->received, n);
}

INLINE void guard_getfd(struct counters *c, s32 pidfd, s64 ret)
{
	u64 file;

	if (ret < 0)
		return;
	note_received(c, 1);
	file = fd_file(pidfd);
	if (file)
		raise_if_observer(task_of(pid_of(file)), 0);
}

/* What a call of CLASS_GUARD can reach: in the table in the place of an operation. */
enum guard { GUARD_NONE, GUARD_PTRACE, GUARD_WRITEV, GUARD_GETFD, GUARD_KERNEL, GUARD_RING, GUARD_MEMORY, GUARD_FANOTIFY };

/* Can memory change by it that a process has alone (exposed.h)? */
INLINE bool exposes(u32 what)
{
	return what == GUARD_PTRACE || what == GUARD_WRITEV || what == GUARD_RING || what == GUARD_MEMORY;
}

/* A call of CLASS_GUARD that a task of the scope made. */
INLINE void guard_call(struct counters *c, u32 what, const u64 *v, s64 ret)
{
	switch (what) {
	case GUARD_PTRACE:
		guard_ptrace(v[0], ret);
		break;
	case GUARD_WRITEV:
		guard_reach(v[0], ret);
		break;
	case GUARD_GETFD:
		guard_getfd(c, v[0], ret);
		break;
	case GUARD_KERNEL:
		if (ret >= 0)
			raise(ALARM_KERNEL, 0);
		break;
	case GUARD_FANOTIFY: /* its events bring descriptors for writing of whatever others open */
		if (ret >= 0 && v[1] & O_ACCMODE) {
			raise(ALARM_UNSEEN, 0);
			expose(present_run(), false);
		}
		break;
	case GUARD_RING: /* only whether the scope has rings at all */
		__sync_fetch_and_add(&c->rings, 1);
		break;
	}
}

/* Can the present task reach the kernel's files, or the runner's memory? Root can, who has rights in the first user namespace, and who
 * can use those of another. */
GLOBAL u32 has_rights(void)
{
	u64 cred = POINTER(task_struct, bpf_get_current_task(), cred), caps;
	s32 level = 0;
	u32 uid = 1;

	READ_FIELD(uid, cred, cred, fsuid.val);
	if (!uid)
		return 1;
	caps = word(cred + OFFSET(struct cred, cap_effective));
	READ_FIELD(level, user_namespace, POINTER(cred, cred, user_ns), level);
	return caps && !level;
}

#endif
