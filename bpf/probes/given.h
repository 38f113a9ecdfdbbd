/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a call was given, as it was when it was entered: kept as far as others could change it under the call, or the
 * call itself can (keep.h). */
#ifndef RUNNER_GIVEN_H
#define RUNNER_GIVEN_H

#include "helpers.h"

struct path_pair {
	u64 mnt, dentry;
};

/* What is kept. Those of a name are for the first one, and shifted by one for the second. */
enum {
	GIVEN_SHARED = 1 << 0, /* nothing: but others have the memory, too */
	GIVEN_START = 1 << 1,  /* the root and the working directory */
	GIVEN_HOW = 1 << 2,    /* the structure of openat2 */
	GIVEN_FILE = 1 << 3,   /* the file of the descriptor that a call is about */
	GIVEN_DIR = 1 << 4,    /* the directory of a descriptor that a name starts from */
	GIVEN_TEXT = 1 << 6,   /* a name's text */
	GIVEN_PLACE = 1 << 8,  /* where a name starts, or the file is, as a path */
	GIVEN_FILES = 1 << 10, /* nothing: but others have the descriptors, too */
	GIVEN_ADDRESS = 1 << 11,    /* the address of a socket call, in place of the first text */
	GIVEN_NO_ADDRESS = 1 << 12, /* it has none */
	GIVEN_UNREAD = 1 << 13, /* nothing: but a name's text can become another one before the kernel reads it */
	GIVEN_RAW = 1 << 19,    /* of a send, whether its data have their own header: */
	GIVEN_HEADER = 1 << 20, /* they have */
	GIVEN_WAY = 1 << 17,    /* the way up from where a name starts, which is too long a path to keep */
	GIVEN_MEMORY = 1 << 15, /* which memory an exec was in */
};

#define HOW_SIZE 24
#define PIN_SIZE 20 /* of the structure of BPF_OBJ_PIN, since Linux 6.5 */

enum { BPF_OBJ_PIN = 6, BPF_OBJ_GET = 7 };

struct given {
	u32 kept;
	u32 pad;
	u64 since; /* when the call was entered */
	u64 file;
	u64 files;  /* the table of descriptors: an exec takes one of its own */
	u64 memory; /* an exec can take it away and then fail */
	u64 how[HOW_SIZE / 8];
	struct path_pair root, pwd;
	struct path_pair dir[2]; /* the first is also the file's */
};

/* What needs more memory. A name is as long as the kernel takes one; a longer path is not kept. */
#define TEXT_MAX 4096
#define PLACE_MAX 2048

/* What is kept of one name. */
struct name {
	u32 text_len;
	u32 place_len;
	u32 marks;    /* of the place */
	u32 absolute; /* the place is the root that the name starts from */
	u32 i_mode;
	u32 pad;
	u64 changes, way; /* of a place (walk.h) */
	u8 text[TEXT_MAX];
	u8 place[PLACE_MAX];
};

_Static_assert(sizeof(struct name) < 8000, "since Linux 6.19 the kernel has no more memory for one value of a task");

#endif
