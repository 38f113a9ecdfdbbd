//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The base object for kernels whose probes have copies (settings.h). */
#define WHOLE
#include "kernel.bpf.c"
