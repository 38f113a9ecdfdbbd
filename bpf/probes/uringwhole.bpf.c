//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The object of io_uring for kernels whose probes have copies (settings.h). */
#define WHOLE
#include "uring.bpf.c"
