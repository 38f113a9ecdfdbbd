/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Memory that processes which share no memory otherwise can change: that of a file. Others can map the same one, or write to it.
 * What a process has alone changes only if it does that itself, and what does so from outside is seen by guard.h. */
#ifndef RUNNER_OTHERS_H
#define RUNNER_OTHERS_H

#include "maps.h"

enum { ENOENT = 2 };

struct area {
	u64 file, end;
};

static long keep_area(struct task_struct *task, struct vm_area_struct *vma, struct area *a)
{
	bpf_probe_read_kernel(&a->file, sizeof(a->file), &vma->vm_file);
	bpf_probe_read_kernel(&a->end, sizeof(a->end), &vma->vm_end);
	return 0;
}

/* Memory that was found to be of its process alone, or of a file. That is so for as long as the process maps nothing anew. */
#define ALONE_FOR 6000 /* ticks: as many changes as the count has numbers take longer */

INLINE bool is_known(struct alone *m, u64 at, u64 len, u32 of_file)
{
	u64 memory;
	u32 changes = 0;

	if (!EXISTS(struct mm_struct___counted, mm_lock_seq.sequence) || m->of_file != of_file || at < m->from || at >= m->end || m->end - at < len)
		return false;
	memory = POINTER(task_struct, bpf_get_current_task(), mm);
	READ_FIELD(changes, mm_struct___counted, memory, mm_lock_seq.sequence);
	return m->memory == memory && m->changes == changes && bpf_jiffies64() - m->at < ALONE_FOR;
}

INLINE bool is_alone(struct alone *m, u64 at)
{
	return is_known(m, at, UPATH_MAX, 0);
}

/* So it is where compilers put texts. */
INLINE bool is_of_file(struct alone *m, u64 at)
{
	return is_known(m, at, 1, 1);
}

INLINE void note_known(struct alone *m, u64 from, u64 end, u32 of_file)
{
	u64 memory = POINTER(task_struct, bpf_get_current_task(), mm);
	u32 changes = 1;

	if (EXISTS(struct mm_struct___counted, mm_lock_seq.sequence))
		READ_FIELD(changes, mm_struct___counted, memory, mm_lock_seq.sequence);
	m->memory = memory;
	m->changes = changes;
	m->at = bpf_jiffies64();
	m->from = from;
	m->end = changes & 1 ? 0 : end; /* it is being changed */
	m->of_file = of_file;
}

/* Can up to a page of bytes at an address be such memory? Where the kernel cannot say it, they can. */
GLOBAL u32 others_reach(struct scratch *s, u64 at, u64 len)
{
	struct area a = {};
	s64 err;

	if (!at || !s)
		return 0;
	if (no_loop) /* that helper is as new as the one that finds an area, Linux 5.17 */
		return 1;
	if (is_alone(&s->alone, at))
		return 0;
	if (is_of_file(&s->alone, at))
		return 1;
	err = bpf_find_vma(bpf_get_current_task_btf(), at, keep_area, &a, 0);
	if (err)
		return err != -ENOENT;
	if (a.file) {
		note_known(&s->alone, at, a.end, 1);
		return 1;
	}
	if (a.end - at < len) { /* they go on in the next area, if there is one: none is shorter than a page */
		err = bpf_find_vma(bpf_get_current_task_btf(), a.end, keep_area, &a, 0);
		if (err && err != -ENOENT)
			return 1;
		if (!err && a.file)
			return 1;
		if (err)
			a.end += UPATH_MAX;
	}
	note_known(&s->alone, at & -UPATH_MAX, a.end, 0);
	return 0;
}

/* Bytes at an address are not in memory yet, so what they were when a call was entered is not known. Can somebody change them before the
 * kernel brings them? Of a file, if somebody has it open for writing; of other memory, if threads share it. Who opens it later is
 * not noticed: to count that would tell equal runs apart by what was in memory. */
GLOBAL u32 others_write(u64 at, u32 threads)
{
	struct area a = {};
	u64 inode, file;
	s32 writers = 0;
	s64 err;
	u32 mode = 0;

	if (no_loop)
		return 1;
	err = bpf_find_vma(bpf_get_current_task_btf(), at, keep_area, &a, 0);
	if (err)
		return err != -ENOENT; /* nothing is there, or nobody knows: the mappings are being changed */
	file = a.file;
	if (!file)
		return threads;
	READ_FIELD(mode, file, file, f_mode);
	inode = POINTER(file, file, f_inode);
	READ_FIELD(writers, inode, inode, i_writecount.counter);
	return mode & FMODE_WRITE || writers > 0;
}

#endif
