//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The base object for the usual kernel (settings.h). */
#define USUAL
#include "kernel.bpf.c"
