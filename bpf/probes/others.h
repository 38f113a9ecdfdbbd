/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Memory that processes which share no memory otherwise can change: that of a file. Others can map the same one, or write to it.
 * What a process has alone changes only if it does that itself, and what does so from outside is seen by guard.h. */
#ifndef RUNNER_OTHERS_H
#define RUNNER_OTHERS_H

#include "exposed.h"
#include "walk.h"

enum { ENOENT = 2, F_SEAL_WRITE = 8, SB_KERNMOUNT = 1 << 22, PAGE = 4096 };

struct area {
	u64 file, end, flags;
};

static long keep_area(struct task_struct *task, struct vm_area_struct *vma, struct area *a)
{
	bpf_probe_read_kernel(&a->file, sizeof(a->file), &vma->vm_file);
	bpf_probe_read_kernel(&a->end, sizeof(a->end), &vma->vm_end);
	bpf_probe_read_kernel(&a->flags, sizeof(a->flags), &vma->vm_flags);
	return 0;
}

/* Finds the area of an address, or the next one above it. Addresses of arm64 can have a tag in their first byte, which areas do not have. */
INLINE s64 find_area(u64 at, struct area *a)
{
#if defined(__TARGET_ARCH_arm64)
	at = (s64)(at << 8) >> 8;
#endif
	return bpf_find_vma(bpf_get_current_task_btf(), at, keep_area, a, 0);
}

/* Flags of an area (include/linux/mm.h of Linux 6.18). */
enum { VM_WRITE = 1 << 1, VM_SHARED = 1 << 3, VM_PFNMAP = 1 << 10, VM_IO = 1 << 14, VM_MIXEDMAP = 1 << 28 };
#define VM_DROPPABLE (1ULL << 40)

/* Does the kernel, or a device, change this memory by itself? The clock is in such memory of each process ([vvar]), and what may be dropped becomes
 * zeros (MAP_DROPPABLE). */
INLINE bool changes_itself(struct area *a)
{
	return a->flags & (VM_PFNMAP | VM_IO | VM_MIXEDMAP | VM_DROPPABLE);
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
	err = find_area(at, &a);
	if (err)
		return err != -ENOENT;
	if (changes_itself(&a))
		return 1;
	if (a.file) {
		note_known(&s->alone, at, a.end, 1);
		return 1;
	}
	if (a.end - at < len) { /* they go on in the next area, if there is one: none is shorter than a page */
		err = find_area(a.end, &a);
		if (err && err != -ENOENT)
			return 1;
		if (!err && (a.file || changes_itself(&a)))
			return 1;
		if (err)
			a.end += UPATH_MAX;
	}
	note_known(&s->alone, at & -UPATH_MAX, a.end, 0);
	return 0;
}

/* Can nobody write to a file of which the kernel does not count who has it open for that? Such are those that only it itself can name, in memory
 * (memfd_create, shmget), unless they are sealed. */
INLINE bool is_sealed(u64 inode)
{
	u32 seals = 0;

	if (magic_of(inode) != TMPFS_MAGIC || !EXISTS(struct shmem_inode_info, seals))
		return false;
	READ_FIELD(seals, shmem_inode_info, inode - OFFSET(struct shmem_inode_info, vfs_inode), seals);
	return seals & F_SEAL_WRITE;
}

/* Can somebody write to a mapped file? */
GLOBAL u32 file_is_written(u64 file)
{
	u64 inode = POINTER(file, file, f_inode), sb = POINTER(inode, inode, i_sb), flags = 0;
	s32 writers = 0;
	u32 mode = 0;

	READ_FIELD(mode, file, file, f_mode);
	READ_FIELD(writers, inode, inode, i_writecount.counter);
	if (mode & FMODE_WRITE || writers > 0)
		return 1;
	if ((file_mode(file) & S_IFMT) != S_IFREG) /* of devices it does not count them */
		return 1;
	READ_FIELD(flags, super_block, sb, s_flags);
	return flags & SB_KERNMOUNT && !is_sealed(inode);
}

/* Do other tasks have the present one's memory? Those of a run that can write the memory of others do not count here: each program that starts has texts in
 * its own copy of its file, which are not in memory yet. */
INLINE bool has_threads(void)
{
	s32 users = 0;

	READ_FIELD(users, mm_struct, POINTER(task_struct, bpf_get_current_task(), mm), mm_users.counter);
	return users > 1;
}

/* Bytes at an address are not in memory yet, so what they were when a call was entered is not known. Can somebody change them before the
 * kernel brings them? Of a file, if somebody has it open for writing; of a process's own copy of it and of other memory, if threads share it.
 * Who opens it later is not noticed: to count that would tell equal runs apart by what was in memory. */
GLOBAL u32 others_write(u64 at, u32 threads)
{
	struct area a = {};
	s64 err;

	if (no_loop)
		return 1;
	err = find_area(at, &a);
	if (err)
		return err != -ENOENT; /* nothing is there, or nobody knows: the mappings are being changed */
	if (changes_itself(&a))
		return 1;
	if (!a.file)
		return threads;
	if (!(a.flags & VM_SHARED) && ((a.flags & VM_WRITE && has_threads()) || is_forced(run_at(SLOT_ENTER))))
		return 1;
	return file_is_written(a.file);
}

/* The same for a text of which a part is in memory: it is about the page that is not. */
INLINE bool others_write_text(u64 at, u32 threads)
{
	u8 first;

	return others_write(bpf_probe_read_user(&first, 1, (void *)at) ? at : (at | (PAGE - 1)) + 1, threads);
}

/* The same when the call has ended, for a text whose first page was not in memory: that did not say how far it goes. */
INLINE bool others_write_rest(u64 at, u64 len)
{
	return (at & (PAGE - 1)) + len >= PAGE && others_write((at | (PAGE - 1)) + 1, 1);
}

#endif
