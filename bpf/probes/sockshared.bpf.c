//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The address hooks for runs that share probes (run.h). */
#define USUAL
#define SHARED
#include "sock.bpf.c"
