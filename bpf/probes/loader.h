/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The loader of a program (PT_INTERP), which the kernel opens and maps next to it, and starts in
 * its place. Programs without one start at their own entry. */
#ifndef RUNNER_LOADER_H
#define RUNNER_LOADER_H

#include "marks.h"
#include "walk.h"

/* A word of the auxiliary vector that the kernel made for the new program. */
GLOBAL u64 aux_word(u32 i, u32 compat32)
{
	u64 at = POINTER(task_struct, bpf_get_current_task(), mm) + OFFSET(struct mm_struct, saved_auxv), two;

	if (!compat32)
		return word(at + 8 * (u64)i);
	two = word(at + 4 * (u64)(i & ~1U));
	return i & 1 ? two >> 32 : (u32)two;
}

struct aux {
	u64 value;
	u32 wanted, compat32;
};

static long aux_step(u32 i, struct aux *a)
{
	u64 key = aux_word(2 * i, a->compat32);

	if (key == a->wanted)
		a->value = aux_word(2 * i + 1, a->compat32);
	return !key || key == a->wanted;
}

/* The value of an entry there; 0 without it. */
GLOBAL u64 aux_value(u32 wanted, u32 compat32)
{
	struct aux a = { .wanted = wanted, .compat32 = compat32 };

	LOOP(32, aux_step, &a);
	return a.value;
}

static long keep_file(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	bpf_probe_read_kernel(ctx, sizeof(u64), &vma->vm_file);
	return 0;
}

/* The file that is mapped at an address of the current task, 0 without one. */
INLINE u64 mapped_file(u64 addr)
{
	u64 file = 0;

	if (bpf_find_vma(bpf_get_current_task_btf(), addr, keep_file, &file, 0))
		return 0;
	return file;
}

/* The path of a mapped file. Stacked file systems map the file of a layer. */
INLINE u64 put_mapped(struct scratch *s, u64 file)
{
	struct path_pair p;
	u32 mode = 0;

	READ_FIELD(mode, file, file, f_mode);
	if (!(mode & FMODE_BACKING) || !EXISTS(struct backing_file___later, user_path))
		return put_file(s, 0, file);
	bpf_probe_read_kernel(&p, sizeof(p), (void *)(file + OFFSET(struct backing_file___later, user_path)));
	s->r.marks |= MARK_HAS_PATH | leaf_marks(p.dentry);
	return put_path(s, 0, p.mnt, p.dentry);
}

/* Records the loader, if there is one. A program can be made so that its loader does not begin where
 * loaders do. What is found there is then the program itself, or nothing: the loader is not known. */
INLINE void tell_loader(struct scratch *s, u64 program, struct counters *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = bpf_task_pt_regs(task);
	u32 compat32 = is_compat(task);
	u64 entry = aux_value(AT_ENTRY, compat32), base = aux_value(AT_BASE, compat32);
#if defined(__TARGET_ARCH_x86)
	u64 start = regs->ip, file, inode, n;
#else
	u64 start = regs->pc, file, inode, n;
#endif

	if (start == entry && !base)
		return;
	begin(&s->r, OP_LOADER, 0);
	file = mapped_file(base ? base : start);
	inode = file ? POINTER(file, file, f_inode) : 0;
	if (inode == POINTER(file, program, f_inode) || inode == POINTER(file, mapped_file(entry), f_inode))
		file = 0;
	n = file ? put_mapped(s, file) : put_file(s, 0, 0);
	s->r.clen1 = n;
	send_record(s, n, c, SLOT_EXEC);
}

#endif
