/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What threads do to the descriptors and directories that they share, and whether that can concern a call in progress. */
#ifndef RUNNER_CHANGES_H
#define RUNNER_CHANGES_H

#include "table.h"
#include "walk.h"

/* What threads that share a table of descriptors did to it. Two can have the same entry: then a call can be in doubt without
 * reason. An entry of the first part is for one descriptor, one of the second for all descriptors of a table, one of the third
 * for the place where names start. */
#define CHANGES 8192
#define CHANGES_OF_TABLES 1024

struct change {
	u64 at;	    /* when it was last changed */
	u64 taken;  /* when that last took away what a call in progress could have put there */
	u64 file;   /* what a call that has ended put there */
	u64 opened; /* when; of a table: when it began to be shared */
	u64 owner;  /* for which process: when it was started */
	u64 asked;  /* when a ring was last asked to close it, and does so some time later */
	u64 closer; /* that request, if it is the only one and closes what a call that has ended put there */
	u64 closed; /* what was asked until then is done */
	u64 closers; /* how many such requests are not known to be done */
	u64 busy;    /* how many calls that change it have begun and not ended (underway.h) */
	u64 copied;  /* whether a descriptor was ever copied to this one: where probes are missed, the entry of the next copy can be, too */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CHANGES + 2 * CHANGES_OF_TABLES);
	__type(key, u32);
	__type(value, struct change);
} changes SEC(".maps");

/* How many changes are underway. It is read before the time of the last one: who ends one sets the time first. */
INLINE u64 read_first(u64 *n)
{
#if defined(__TARGET_ARCH_x86)
	u64 v = *(volatile u64 *)n;

	asm volatile("" ::: "memory");
	return v;
#else
	return __sync_fetch_and_add(n, 0);
#endif
}

INLINE bool changed_since(struct change *c, u64 since)
{
	return read_first(&c->busy) || read_first(&c->closers) || c->at >= since;
}

/* What can be done to the descriptors of any table. Each open and each close of a thread asks for it: it is not in the large map above, whose
 * pages are far from each other. */
struct giving {
	u64 at;	 /* when one was last given away, or begun to be */
	u64 busy; /* by how many calls that have begun and are not known to be done */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct giving);
} given_away SEC(".maps");

INLINE u64 hash_of(u64 table)
{
	return ((table >> 6) * 0x9e3779b97f4a7c15) >> 40;
}

INLINE u32 place_of_change(u64 table, u32 fd)
{
	return (hash_of(table) + fd) & (CHANGES - 1);
}

INLINE u32 place_of_table(u64 table, u32 what)
{
	return CHANGES + (what == CHANGES_START ? CHANGES_OF_TABLES : 0) + (hash_of(table) & (CHANGES_OF_TABLES - 1));
}

INLINE struct change *change_at(u32 place)
{
	return bpf_map_lookup_elem(&changes, &place);
}

INLINE struct change *change_of(u64 table, u32 fd)
{
	return change_at(place_of_change(table, fd));
}

INLINE struct change *change_of_table(u64 table, u32 what)
{
	return change_at(place_of_table(table, what));
}

/* Sets a time that several can set at once: an earlier one does not set it back, unless three others come between each time. */
INLINE void set_time(u64 *time, u64 now)
{
	u64 was = *time;

#pragma clang loop unroll(full)
	for (u32 i = 0; i < 3; i++) {
		u64 is;

		if (was >= now)
			return;
		is = __sync_val_compare_and_swap(time, was, now);
		if (is == was)
			return;
		was = is;
	}
	*time = now;
}

/* A seccomp supervisor gives a task that waits for it a descriptor, in the place of what that had there (include/uapi/linux/seccomp.h:
 * SECCOMP_ADDFD_FLAG_SETFD). It names the task by a number that only its listener knows: this can be any table. */
#define SECCOMP_ADDFD 0x2103 /* SECCOMP_IOCTL_NOTIF_ADDFD; the kernel does not look at its size and direction */

INLINE bool gives_away(u32 request)
{
	return (request & 0xffff) == SECCOMP_ADDFD;
}

/* The device of autofs closes any descriptor of the program that it is asked to (include/uapi/linux/auto_dev-ioctl.h). */
#define AUTOFS_CLOSE 0x9375 /* AUTOFS_DEV_IOCTL_CLOSEMOUNT; nor does this one */

INLINE bool closes_any(u32 request)
{
	return (request & 0xffff) == AUTOFS_CLOSE;
}

/* It begins to, or has ended: the kernel does it in between. */
INLINE void note_giving(u64 n)
{
	u32 key = 0;
	struct giving *g = bpf_map_lookup_elem(&given_away, &key);

	if (!g)
		return;
	set_time(&g->at, bpf_ktime_get_ns());
	__sync_fetch_and_add(&g->busy, n);
}

INLINE bool gave_away(u64 since)
{
	u32 key = 0;
	struct giving *g = bpf_map_lookup_elem(&given_away, &key);

	return g && (read_first(&g->busy) || g->at >= since);
}

INLINE u64 descriptors_of(u64 task)
{
	return POINTER(task_struct, task, files);
}

INLINE u64 descriptors(void)
{
	return descriptors_of(bpf_get_current_task());
}

/* The questions are GLOBAL functions: a verifier would else follow each of them in each way that leads to it. */
GLOBAL u32 table_changed(u64 table, u32 what, u64 since)
{
	struct change *c = change_of_table(table, what);

	return (c && (read_first(&c->busy) || c->at >= since)) || (what == CHANGES_ALL && gave_away(since));
}

/* Was it since the call was entered that a record is about? */
GLOBAL u32 descriptor_changed(struct scratch *s, s32 fd)
{
	u64 files = descriptors();
	struct change *c;

	if (!s || !(s->given.kept & GIVEN_FILES))
		return false;
	c = change_of(files, fd);
	return (c && changed_since(c, s->given.since)) || table_changed(files, CHANGES_ALL, s->given.since);
}

/* The same of the root and the working directory. */
INLINE bool start_changed(struct scratch *s)
{
	return table_changed(POINTER(task_struct, bpf_get_current_task(), fs), CHANGES_START, s->given.since);
}

/* Can a ring close it, or have closed it, at a time that is not known? If only one was asked to close a file that was known
 * to be there, and nothing else closed that, then it has done so: the descriptor was free. */
INLINE bool is_closing(struct change *c, u64 files)
{
	u64 closer = c->closer, asked = c->asked;

	if (!c->closers)
		return false;
	if (!closer || c->at != asked || table_changed(files, CHANGES_ALL, asked))
		return true;
	c->closed = asked;
	if (__sync_val_compare_and_swap(&c->closer, closer, 0) != closer)
		return true;
	__sync_fetch_and_add(&c->closers, -1);
	return false;
}

/* When the process of the present task was started: no other one has this number and the same table. Not read by helpers, which need
 * memory on the stack: those of the programs that come here are full. */
INLINE u64 owner_of_table(u64 task)
{
	u64 leader;

	if (!CAN_CAST)
		return bpf_get_current_task_btf()->group_leader->start_boottime;
	leader = CAST(timespec64, task + OFFSET(struct task_struct, group_leader))->tv_sec;
	return CAST(task_struct, leader)->start_boottime;
}

/* Whether the file of a descriptor can be the one that a call opened with these flags. What others do to the descriptors is noted, where
 * there are others. Who else holds the file says nothing: a fork copies the table, and a look at /proc holds each file for a moment. */
INLINE bool can_be_opened(u64 file, u64 flags)
{
	return file && fits(file, flags);
}

/* A call that opened a file ends, and nothing says that its descriptor has another one by now. Was it taken away in the
 * meantime? From here on, a thread that closes it closes what it was told of. Whatever was closed can have been a file
 * without O_LARGEFILE, if that is what the call opened. Gives the record its time, if it has none. */
GLOBAL u32 still_opened(struct scratch *s, s32 fd, u64 file, u32 largefile)
{
	u64 task, files, since;
	struct change *c;

	if (!s || !(s->given.kept & GIVEN_FILES))
		return true;
	task = bpf_get_current_task();
	files = descriptors_of(task);
	since = s->given.since;
	c = change_of(files, fd);
	if (!c)
		return true;
	c->owner = owner_of_table(task);
	c->opened = bpf_ktime_get_ns();
	if (!s->r.ktime)
		s->r.ktime = c->opened;
	__sync_lock_test_and_set(&c->file, file);
	if (!read_first(&c->busy) && (largefile ? c->taken : c->at) < since && !table_changed(files, CHANGES_ALL, since) && !is_closing(c, files) &&
	    (!c->copied || held_once(file))) /* what is copied there has the descriptor that it is copied from, too */
		return true;
	c->file = 0;
	return false;
}

/* From now on others have the present task's table, too. Until then it could have it alone, and what it did to it then was not noted. */
INLINE void note_sharing(u64 task)
{
	u64 table = descriptors_of(task);
	struct change *c;
	s32 users = 0;

	READ_FIELD(users, files_struct, table, count.counter);
	if (users > 2)
		return;
	c = change_of_table(table, CHANGES_ALL);
	if (c)
		set_time(&c->opened, bpf_ktime_get_ns());
}

/* Was the table shared all the time since then? */
INLINE bool shared_since(u64 table, u64 since)
{
	struct change *c = change_of_table(table, CHANGES_ALL);

	return c && c->opened < since;
}

/* Did a call that has ended put there what a descriptor has? Of several that close it, only one is told so. */
INLINE bool take_known(struct change *c, u64 task, u64 files, u64 file)
{
	return c->owner == owner_of_table(task) && shared_since(files, c->opened) && !table_changed(files, CHANGES_ALL, c->opened) &&
	       __sync_val_compare_and_swap(&c->file, file, 0) == file;
}

/* Is what a descriptor has known not to be from a call in progress? Files that are opened by a name have O_LARGEFILE, or O_PATH:
 * the kernel adds it, but for 32-bit programs. Pipes, sockets and what else has no name have neither. */
INLINE bool is_settled(struct change *c, u64 task, u64 files, s32 fd)
{
	u64 file = file_of_table(files, fd);

	if (!file)
		return false;
	if (!(file_flags(file) & (O_LARGEFILE | O_PATH)))
		return true;
	return take_known(c, task, files, file);
}

/* What the present task is about to do to a descriptor of its table. */
INLINE void note_descriptor(u64 task, u64 table, s32 fd)
{
	u64 now = bpf_ktime_get_ns();
	struct change *c = change_of(table, fd);

	if (!c)
		return;
	set_time(&c->at, now);
	if (!is_settled(c, task, table, fd))
		set_time(&c->taken, now);
}

/* Another file is put there, which others hold as well. */
INLINE void note_copied(u64 table, s32 fd)
{
	struct change *c = change_of(table, fd);

	if (c)
		c->copied = 1;
}

/* Has the task rings? Their workers share its descriptors and directories, also those that do not live any more or not yet. */
INLINE bool has_rings(u64 task)
{
	return EXISTS(struct task_struct___rings, io_uring) && POINTER(task_struct___rings, task, io_uring);
}

/* The task's table of descriptors, if it shares that; 0 if not. */
INLINE u64 shared_table(u64 task)
{
	u64 table = POINTER(task_struct, task, files);
	s32 users = 0;

	READ_FIELD(users, files_struct, table, count.counter);
	return users < 2 && !has_rings(task) ? 0 : table;
}

/* The places where names start, if the task shares them; 0 if not. */
INLINE u64 shared_start(u64 task)
{
	u64 fs = POINTER(task_struct, task, fs);
	s32 users = 0;

	READ_FIELD(users, fs_struct, fs, users);
	return users < 2 && !has_rings(task) ? 0 : fs;
}

/* What a call of CLASS_CHANGE changes, if others have it too; 0 if nobody has. */
INLINE u64 changed_by(u64 task, u32 what)
{
	return what == CHANGES_START ? shared_start(task) : shared_table(task);
}

/* A call that changes what other threads' calls are given, but for a close. It is told when it begins. Returns one more than where that
 * is noted; 0 if nobody has it too. */
INLINE u32 note_change(u64 task, u32 what, s32 second)
{
	u64 table = changed_by(task, what);
	struct change *c;

	if (!table)
		return 0;
	if (what == CHANGES_SECOND) {
		note_descriptor(task, table, second);
		note_copied(table, second);
		return place_of_change(table, second) + 1;
	}
	c = change_of_table(table, what);
	if (c)
		set_time(&c->at, bpf_ktime_get_ns());
	return place_of_table(table, what) + 1;
}

#endif
