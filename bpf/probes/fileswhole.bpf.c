//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The LSM hooks for kernels with every part (settings.h). */
#define WHOLE
#include "files.bpf.c"
