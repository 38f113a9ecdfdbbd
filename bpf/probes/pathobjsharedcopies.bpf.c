//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The lookups for runs that share probes (run.h), where these have copies (marks.h). */
#define WHOLE
#define SHARED
#include "pathobj.bpf.c"
