//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The lookups for kernels with every part (settings.h). */
#define WHOLE
#include "pathobj.bpf.c"
