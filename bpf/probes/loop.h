/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How the probes repeat something more often than a verifier follows: by bpf_loop, or in
 * pieces. A piece is a GLOBAL function, which the verifier checks once, and not again for
 * each call. So both reach as far. */
#ifndef RUNNER_LOOP_H
#define RUNNER_LOOP_H

#include "settings.h"

/* Calls STEP(i, CTX) for i from 0, until it returns 1, N times at most. Without bpf_loop a verifier follows each of them: what a step does
 * is then in GLOBAL functions. */
#define LOOP(n, step, ctx)                                  \
	do {                                                \
		if (!no_loop) {                             \
			bpf_loop(n, step, ctx, 0);          \
			break;                              \
		}                                           \
		for (u32 _i = 0; _i < (n); _i++)            \
			if (step(_i, ctx))                  \
				break;                      \
	} while (0)

#endif
