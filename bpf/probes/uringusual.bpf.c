//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The object of io_uring for the usual kernel (settings.h). */
#define USUAL
#include "uring.bpf.c"
