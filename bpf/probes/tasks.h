/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The life of tasks: exec, fork, exit, and moves out of the scope. */
#ifndef RUNNER_TASKS_H
#define RUNNER_TASKS_H

#include "context.h"
#include "guard.h"
#include "entry.h"
#include "loader.h"
#include "pathobj.h"
#include "taken.h"
#include "underway.h"

BODY(exec_body);

/* The name that the kernel makes for a program that is started by a descriptor: this, the number, and with a slash
 * before it the name that was given. */
#define FD_PATH "/dev/fd/"
enum { FD_PATH_LEN = sizeof(FD_PATH) - 1, FD_DIGITS = 10 };

/* The number in such a name, and how many bytes it takes. */
INLINE s32 fd_of_name(u64 name, u32 *len)
{
	char digits[FD_DIGITS + 2] = {};
	s32 fd = 0;
	u32 i;

	bpf_probe_read_kernel_str(digits, sizeof(digits), (void *)(name + FD_PATH_LEN));
	for (i = 0; i < FD_DIGITS; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			break;
		fd = fd * 10 + digits[i] - '0';
	}
	*len = FD_PATH_LEN + i + (digits[i] == '/');
	return fd;
}

/* Can the place that a script's name starts from be another one than when its exec was entered? Without a descriptor, it is the root or the
 * working directory. By now the task has descriptors of its own: what others did to those that it shared is told of their table. */
GLOBAL u32 script_moved(u64 mnt, u64 dentry, s32 fd, u32 absolute)
{
	struct path_pair now = { .mnt = mnt, .dentry = dentry };
	struct entry *e = entry_of(bpf_get_current_task_btf(), 0);
	struct change *c;
	struct given *g;

	if (!e || !(e->given.kept & GIVEN_MEMORY))
		return 0;
	g = &e->given;
	if (fd < 0) {
		if (!(g->kept & GIVEN_START))
			return 0;
		return !same_place(absolute ? &g->root : &g->pwd, &now) ||
		       table_changed(POINTER(task_struct, bpf_get_current_task(), fs), CHANGES_START, g->since);
	}
	if (!(g->kept & GIVEN_DIR))
		return 0;
	c = change_of(g->files, fd);
	return !same_place(&g->dir[0], &now) || (c && changed_since(c, g->since)) || table_changed(g->files, CHANGES_ALL, g->since);
}

/* Where the name of a program starts. */
struct start {
	struct path_pair at;
	s32 fd; /* the descriptor, -1 without one */
	u32 absolute;
};

/* The name of a program, without what the kernel puts before it, and where that name starts. A descriptor that was closed by the start leads
 * nowhere, and nobody needs it: then the program is no script. */
INLINE u64 program_name(struct linux_binprm *bprm, struct start *start)
{
	u64 name = 0, fdpath = 0;
	char first = 0;
	u32 len = 0;

	READ(name, bprm, filename);
	READ(fdpath, bprm, fdpath);
	start->fd = -1;
	if (fdpath && fdpath == name) {
		start->fd = fd_of_name(name, &len);
		file_path(fd_file(start->fd), &start->at);
		if (start->at.dentry)
			return name + len;
	}
	bpf_probe_read_kernel(&first, 1, (void *)name);
	start->absolute = first == '/';
	base_path(start->absolute, AT_FDCWD, &start->at);
	return name;
}

INLINE int exec(u64 *ctx)
{
	struct linux_binprm *bprm = (struct linux_binprm *)ctx[2];
	u32 old_tid = ctx[1];
	struct counters *c = counters_of(SLOT_EXEC);
	struct start base = {};
	struct scratch *s;
	u64 off = 0, file = 0, name = 0, interp = 0;
	u32 first;
	s64 n;

	if (!c)
		return 0;
	s = scratch_at(scratch_key(copied_tasks ? COPY_OF(exec) : 0, SCRATCH_EXEC));
	if (!s) {
		__sync_fetch_and_add(&c->scratch_missing, 1);
		return 0;
	}
	begin(&s->r, OP_EXEC, 0);
	s->r.aux1 = old_tid;
	s->r.aux2 = was_left();
	s->r.marks = MARK_HAS_U1 | MARK_HAS_BASE1;
	put_context(&s->r, bpf_get_current_task());
	put_number(&s->r, bpf_get_current_task());
	/* the kernel's own copies: no race with the program */
	n = bpf_probe_read_kernel_str(&s->blob[0], UPATH_MAX, (void *)program_name(bprm, &base));
	if (n > 0)
		off = s->r.ulen1 = n - 1;
	else
		s->r.marks |= MARK_UFAULT;
	READ(file, bprm, file);
	s->r.clen1 = put_file(s, off, file);
	off += s->r.clen1;
	BARRIER(off);
	if (off > BLOB_LAST)
		return 0;
	READ(name, bprm, filename);
	READ(interp, bprm, interp);
	n = base.fd >= 0 && interp == name ? 0 : bpf_probe_read_kernel_str(&s->blob[off], UPATH_MAX, (void *)interp);
	if (n > 0) {
		s->r.ulen2 = n - 1;
		s->r.marks |= MARK_HAS_U2;
		off += n - 1;
	}
	/* where a relative script name starts */
	first = begin_second(&s->r);
	if (interp != name && script_moved(base.at.mnt, base.at.dentry, base.fd, base.absolute)) {
		s->r.marks = (s->r.marks & ~(u32)MARK_HAS_BASE1) | MARK_CHANGED;
	} else {
		s->r.clen2 = put_path(s, off, base.at.mnt, base.at.dentry);
		off += s->r.clen2;
	}
	end_second(&s->r, first);
	off += put_root(s, off);
	off += put_arguments(s, off);
	send_record(s, off, c, SLOT_EXEC);
	if (!no_loop) /* the helper that it needs is as old */
		tell_loader(s, file, c);
	return 0;
}

#ifndef USUAL
SEC("tp_btf/sched_process_exec")
int body_exec(u64 *ctx)
{
	STACK_OF_TASK(ctx, exec_body);
	return exec(ctx);
}
#endif

INLINE int at_exec(u64 *ctx, bool copied)
{
	if (!present_in_scope(SLOT_EXEC))
		return 0;
	note_start(bpf_get_current_task_btf());
	if (!first_at_exec())
		return 0;
	if (!copied)
		return exec(ctx);
	go_on(ctx, &exec_body, SLOT_EXEC);
	return 0;
}

PROBE("sched_process_exec", exec, at_exec)

INLINE u64 cgroup_id_of(u64 cg)
{
	struct cgroup *c = (void *)cg;
	struct kernfs_node *kn = NULL;
	u64 id = 0;

	if (READ(kn, c, kn) || READ(id, kn, id))
		return 0;
	return id;
}

INLINE u64 hierarchy_of(u64 cg)
{
	struct cgroup *c = (void *)cg;
	u64 root = 0;

	READ(root, c, root);
	return root;
}

/* Keeps which processes the capture started itself. Those who share probes do not ask. */
INLINE void note_own_child(struct task_struct *child)
{
#ifndef SHARED
	u32 tgid = child->tgid;
	u64 born = child->start_boottime;

	if (bpf_get_current_pid_tgid() >> 32 == capture_tgid && tgid != capture_tgid)
		bpf_map_update_elem(&own_children, &tgid, &born, 0);
#endif
}

INLINE int forked(u64 *ctx, struct task_struct *child)
{
	struct counters *c = counters_of(SLOT_FORK);
	struct scratch *s;
	u64 to, off = 0;

	if (!c)
		return 0;
	s = scratch_at(scratch_key(copied_tasks ? COPY_OF(fork) : 0, SCRATCH_FORK));
	if (!s) {
		__sync_fetch_and_add(&c->scratch_missing, 1);
		return 0;
	}
	begin(&s->r, OP_FORK, 0);
	s->r.aux1 = (u64)(u32)child->tgid << 32 | (u32)child->pid;
	if (child->tgid == child->pid) { /* a process: it begins with the root of the one that makes it */
		put_context(&s->r, address(ctx, 1));
		put_number(&s->r, address(ctx, 1));
		off = put_root(s, 0);
	}
	to = cgroup_of(address(ctx, 1));
	s->r.aux2 = cgroup_id_of(to);
	if (to != cgroup_of(address(ctx, 0)) && !in_scope(to, run_at(SLOT_FORK)))
		s->r.marks |= MARK_ESCAPE;
	send_record(s, off, c, SLOT_FORK);
	return 0;
}

BODY(fork_body);

#ifndef USUAL
SEC("tp_btf/sched_process_fork")
int body_fork(u64 *ctx)
{
	STACK_OF_TASK(ctx, fork_body);
	return forked(ctx, (struct task_struct *)ctx[1]);
}
#endif

INLINE int at_fork(u64 *ctx, bool copied)
{
	struct task_struct *child = (struct task_struct *)ctx[1];

	note_own_child(child);
	if (!present_in_scope(SLOT_FORK) || !first_at_fork(child))
		return 0;
	if (descriptors_of(address(ctx, 1)) == descriptors_of(address(ctx, 0)))
		note_sharing(address(ctx, 0));
	if (!copied)
		return forked(ctx, child);
	go_on(ctx, &fork_body, SLOT_FORK);
	return 0;
}

PROBE("sched_process_fork", fork, at_fork)

SEC("tp_btf/sched_process_exit")
int on_task_exit(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct counters *c;
	struct rec r;

	if (!present_in_scope(SLOT_TASK_EXIT))
		return 0;
	c = counters_of(SLOT_TASK_EXIT);
	if (!c || !first_at_task_exit())
		return 0;
	forget_objects(); /* of a call whose end no copy saw */
	change_ended();
	begin(&r, OP_EXIT, 0);
	r.aux2 = (u32)task->exit_code;
	emit(&r, sizeof(r), c, SLOT_TASK_EXIT);
	return 0;
}

/* Runs in the context of the process that moves a task, for any task of the machine. Only
 * user space knows whether the moved task was in the scope, from the tasks that it has
 * seen. Only moves to a cgroup outside matter.
 * This program needs no copies: the kernel calls it with a spinlock held, under the one
 * mutex of all cgroups, so no other task can come here while it runs. */
struct moved {
	u64 task;
	u64 to; /* a cgroup */
	u32 run; /* whose that is */
	u32 pad;
};

INLINE void tell_move(u32 run, struct moved *m)
{
	struct counters *c = counters_in(run, SLOT_MOVE);
	u64 task = m->task;
	u32 tgid = 0, tid = 0;
	struct rec r;

	if (!c || m->run == run)
		return;
	READ_FIELD(tgid, task_struct, task, tgid);
	READ_FIELD(tid, task_struct, task, pid);
	begin(&r, OP_MOVE, 0);
	r.aux1 = (u64)tgid << 32 | tid;
	r.aux2 = cgroup_id_of(m->to);
	r.marks = MARK_ESCAPE;
	emit(&r, sizeof(r), c, SLOT_MOVE);
}

#ifdef SHARED
static long tell_run_of_move(u32 i, struct moved *m)
{
	struct run *r = bpf_map_lookup_elem(&runs, &i);

	if (r && r->cgroup_id && !r->ended)
		tell_move(i + 1, m);
	return 0;
}
#endif

SEC("tp_btf/cgroup_attach_task")
int on_move(u64 *ctx)
{
	struct moved m = { .task = address(ctx, 2), .to = address(ctx, 0) };

	if (present_in_scope(SLOT_MOVE) && observer(m.task, run_at(SLOT_MOVE)))
		raise(ALARM_MOVE, 0);
	if (hierarchy_of(m.to) != hierarchy_of(cgroup_of(m.task)))
		return 0; /* this skips the v1 hierarchies of a hybrid setup */
	m.run = run_of(m.to);
#ifdef SHARED
	bpf_loop(RUNS, tell_run_of_move, &m, 0);
#else
	tell_move(1, &m);
#endif
	return 0;
}

#endif
