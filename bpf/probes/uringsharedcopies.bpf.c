//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The object of io_uring for runs that share probes (run.h), where these have copies (marks.h). */
#define WHOLE
#define SHARED
#include "uring.bpf.c"
