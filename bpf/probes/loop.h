/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How the probes repeat something more often than a verifier follows: by bpf_loop, or in
 * pieces. A piece is a GLOBAL function, which the verifier checks once, and not again for
 * each call. So both reach as far. */
#ifndef RUNNER_LOOP_H
#define RUNNER_LOOP_H

#include "settings.h"

#endif
