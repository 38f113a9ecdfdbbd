/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the loader tells the objects of the kernel. The usual one has every part and needs no copies of probes: the objects that
 * are compiled with USUAL are for that one. Those with WHOLE are for kernels that have every part, with or without copies. The
 * compiler leaves out the rest. Else a verifier follows it, or takes it out, at every start; and before it does (Linux 7.1 and
 * later), it looks at what each instruction could do to each part of the stack, whether anything gets there or not. */
#ifndef RUNNER_SETTINGS_H
#define RUNNER_SETTINGS_H

#include "helpers.h"

#ifdef USUAL
enum { no_cast = 0, no_loop = 0, copied_tasks = 0, copied_calls = 0, copy = 0 };
#else
#ifdef WHOLE
enum { no_cast = 0, no_loop = 0 };
#else
/* Read by helper calls. Kernels before 6.2 must, which do not have the kfunc of memory.h. It is a byte and is asked for
 * nothing more, because a verifier follows this at each read. */
const volatile u8 no_cast;
/* Loop in pieces. Kernels before 5.17 must, which have no bpf_loop. */
const volatile bool no_loop;
#endif
/* Which probes have copies. */
const volatile bool copied_tasks; /* exec, fork, exit */
const volatile bool copied_calls; /* the entry and the exit of system calls */
const volatile u32 copy;	  /* the number of this copy, of a probe that has several */
#endif

#endif
