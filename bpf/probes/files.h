/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* File rules: what the loader tells the hooks of files.bpf.c, and the place of an object
 * among the rules. LSM programs can be preempted, and nothing keeps another task from
 * entering them on the same CPU. So nothing here is kept per CPU. */
#ifndef RUNNER_FILES_H
#define RUNNER_FILES_H

#include "filestypes.h"
#include "walk.h"

enum {
	DCACHE_DISCONNECTED = 0x20,
	MNT_NS_INTERNAL = -22, /* the namespace of mounts that are in no tree: an error pointer */
};

/* Operations in the order of schemas.RuleOps, as HOOK_READ << op. */
enum file_op { FILE_READ, FILE_WRITE, FILE_CREATE, FILE_DELETE, FILE_EXEC, FILE_OPS };

/* A verdict is an entry of file_hits, times two, plus one if it denies. Entries 0 and 1 are
 * the defaults of files and exec, the others are rules. */
#define DENIES(verdict) ((verdict) & 1)
#define BY_RULE(verdict) ((verdict) >= 4)

/* A directory that rules name, or one above such a directory. The verdicts hold for
 * everything below for which there is no other node. */
struct file_node {
	u32 verdict[FILE_OPS];
	u32 below;	 /* the verdict of a rule that denies something further down, or 0 */
	u32 allow_below; /* operations that a rule further down allows, 1 << op */
	u32 pad;
};

/* Paths as names from the top of all mounts begin at the first node. The second has what
 * holds for a path that is not known, the third what holds for memory and pipes, which
 * have none. Paths within a file system begin at a node of its own. */
enum { NODE_TOP, NODE_UNKNOWN, NODE_UNNAMED };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, struct file_node);
} file_nodes SEC(".maps");

struct file_edge {
	u32 node;
	u32 len;
	u8 name[256]; /* zero after its end */
};

/* From a node and a name to the node below. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct file_edge);
	__type(value, u32);
} file_edges SEC(".maps");

/* A directory or file whose place is known: the root of a mount, or what a rule names. */
struct file_anchor {
	u32 node;
	u16 leaf; /* nothing below it has a node */
	u16 len;
	u8 path[512]; /* as the loader sees it: components, leaf first, each after its length */
};

/* By the address of the inode, which the loader keeps in use, so that it is not given to
 * another one. A file system of which each mount is a new instance of the same is found by
 * its magic number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct file_anchor);
} file_anchors SEC(".maps");

/* How often each entry refused: counted even if the record is lost. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} file_hits SEC(".maps");

/* The number of an entry's rule in the policy file. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u32);
} file_numbers SEC(".maps");

/* Refusals because an object's place could not be found. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} file_unresolved SEC(".maps");

/* Only the last names before the top are compared with the rules: no rule has more. */
#define NAMES 128

/* The space that one search for a place needs. A program takes a free one, and can be preempted
 * while it has it. Memory of the task would do, but before Linux 6.2 the kernel gives none
 * while another task of the CPU is preempted in the same helper: what is allowed was refused. */
#define SPACES 512

struct file_space {
	u64 used;
	u64 names[NAMES]; /* a ring of dentries */
	u64 n;		  /* dentries put there. On the stack, the verifier would count along */
	struct file_edge edge;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SPACES);
	__type(key, u32);
	__type(value, struct file_space);
} file_spaces SEC(".maps");

/* A free entry of a table, from key on. */
struct claim {
	u32 key;
	u32 got;
};

static long space_step(u32 i, struct claim *c)
{
	u32 key = (c->key + i) % SPACES;
	struct file_space *s = bpf_map_lookup_elem(&file_spaces, &key);

	if (!s || __sync_val_compare_and_swap(&s->used, 0, 1) != 0)
		return 0;
	c->key = key;
	c->got = 1;
	return 1;
}

INLINE struct file_space *take_space(void)
{
	struct claim c = { .key = bpf_get_smp_processor_id() * 4 };

	bpf_loop(SPACES, space_step, &c, 0);
	return c.got ? bpf_map_lookup_elem(&file_spaces, &c.key) : NULL;
}

INLINE void leave_space(struct file_space *s)
{
	__sync_lock_test_and_set(&s->used, 0);
}

/* Set by the loader. */
const volatile u64 host_ns;    /* its mount namespace: there the rules' paths mean something */
const volatile u32 loader;     /* its process: what it starts in the scope proves that the probes work */
const volatile bool overlays;  /* there was a stacked file system before */

/* Where something is. A place is a node, and what is known about it. */
enum {
	PLACE_KNOWN,
	PLACE_ELSEWHERE, /* object: on a file system without a known place */
	PLACE_DETACHED,	 /* name: in a mount tree that is mounted nowhere */
	PLACE_INTERNAL,	 /* name: on a mount that only the kernel uses */
	PLACE_NONE,	 /* name: the hook does not say by which mount it came */
	PLACE_LOST,	 /* could not be found */
};
#define PLACE(state, exact, node) ((u64)(state) << 40 | (u64)(exact) << 32 | (node))
#define STATE(place) ((u32)((place) >> 40))
#define EXACT(place) ((place) >> 32 & 1) /* the node's own path, not one below it */

struct climb {
	struct file_space *t;
	u64 dentry;
	u64 mnt;
	u64 root;
	u32 state;
	u32 node;
	u32 leaf;
	u32 done;
};

INLINE u64 anchor_at(struct climb *c, u64 key)
{
	struct file_anchor *a = bpf_map_lookup_elem(&file_anchors, &key);

	if (!a)
		return 0;
	c->node = a->node;
	c->leaf = a->leaf;
	c->state = PLACE_KNOWN;
	return c->done = 1;
}

/* Up within the file system, to the first directory whose place is known. */
static long object_step(u32 i, struct climb *c)
{
	u64 dentry = c->dentry, inode = POINTER(dentry, dentry, d_inode), parent, sb, magic = 0;
	u32 flags = 0;

	if (inode && anchor_at(c, inode))
		return 1;
	parent = POINTER(dentry, dentry, d_parent);
	if (!parent)
		return 1;
	if (parent != dentry) {
		c->t->names[c->t->n++ & (NAMES - 1)] = dentry;
		c->dentry = parent;
		return 0;
	}
	sb = super_of(dentry);
	if (POINTER(super_block___place, sb, s_root) == dentry) {
		magic = POINTER(super_block___place, sb, s_magic);
		if (anchor_at(c, magic))
			return 1;
	}
	READ_FIELD(flags, dentry___place, dentry, d_flags);
	if (!(flags & DCACHE_DISCONNECTED))
		c->state = PLACE_ELSEWHERE;
	c->done = 1;
	return 1;
}

/* Up through the mounts, to the top of the tree. */
static long name_step(u32 i, struct climb *c)
{
	u64 parent;

	if (c->dentry == c->root) {
		u64 at = c->mnt - OFFSET(struct mount, mnt);
		struct mount_links m;

		read_mount(&m, at);
		if (!m.parent || !m.point)
			return 1;
		if (m.parent == at) {
			if (nowhere(m.ns))
				c->state = PLACE_DETACHED;
			else if (is_end(m.ns, at))
				c->state = PLACE_KNOWN;
			else /* it is being moved */
				return 1;
			c->done = 1;
			return 1;
		}
		c->dentry = m.point;
		c->mnt = m.parent + OFFSET(struct mount, mnt);
		c->root = mount_root(c->mnt);
		return !c->root;
	}
	parent = POINTER(dentry, c->dentry, d_parent);
	if (!parent || parent == c->dentry)
		return 1;
	c->t->names[c->t->n++ & (NAMES - 1)] = c->dentry;
	c->dentry = parent;
	return 0;
}

/* Down the rules' tree by the names that were collected. */
static long down_step(u32 i, struct climb *c)
{
	struct file_edge *e = &c->t->edge;
	struct links l;
	u32 *node;
	u64 n;

	if (i >= c->t->n || i >= NAMES)
		return 1;
	read_links(&l, c->t->names[(c->t->n - 1 - i) & (NAMES - 1)]);
	if (!l.name || !l.len || l.len > 255) {
		c->done = 0;
		return 1;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->node = c->node;
	e->len = l.len;
	n = l.len;
	BARRIER(n);
	n &= 255;
	if (bpf_probe_read_kernel(e->name, n, (void *)l.name)) {
		c->done = 0;
		return 1;
	}
	node = bpf_map_lookup_elem(&file_edges, e);
	if (!node) {
		c->leaf = 1;
		return 1;
	}
	c->node = *node;
	return 0;
}

/* A path can be deeper; then its place is lost, and it might be any path. */
#define CLIMB_MAX 65536

INLINE u64 descend(struct climb *c)
{
	if (c->done && c->state == PLACE_KNOWN && !c->leaf)
		bpf_loop(NAMES, down_step, c, 0);
	if (!c->done)
		return PLACE(PLACE_LOST, 0, NODE_UNKNOWN);
	/* a path longer than the ring left the tree long before its end */
	return PLACE(c->state, !c->leaf && c->t->n <= NAMES, c->node);
}

/* The place of an object in its file system, whatever mounts and names lead there. */
GLOBAL u64 object_place(u64 dentry)
{
	struct climb c = { .dentry = dentry, .state = PLACE_LOST };
	u64 place;

	if (!dentry)
		return PLACE(PLACE_LOST, 0, NODE_UNKNOWN);
	c.t = take_space();
	if (!c.t)
		return PLACE(PLACE_LOST, 0, NODE_UNKNOWN);
	c.t->n = 0;
	bpf_loop(CLIMB_MAX, object_step, &c, 0);
	place = descend(&c);
	leave_space(c.t);
	return place;
}

/* The place of the name that the object has in the mounts that led to it. */
GLOBAL u64 name_place(u64 mnt, u64 dentry)
{
	struct climb c = { .dentry = dentry, .mnt = mnt, .node = NODE_TOP, .state = PLACE_LOST };
	u64 place;

	if (!mnt)
		return PLACE(PLACE_NONE, 0, NODE_UNKNOWN);
	if (POINTER(mount, mnt - OFFSET(struct mount, mnt), mnt_ns) == (u64)MNT_NS_INTERNAL)
		return PLACE(PLACE_INTERNAL, 0, NODE_UNKNOWN);
	c.root = mount_root(mnt);
	if (!dentry || !c.root)
		return PLACE(PLACE_LOST, 0, NODE_UNKNOWN);
	c.t = take_space();
	if (!c.t)
		return PLACE(PLACE_LOST, 0, NODE_UNKNOWN);
	c.t->n = 0;
	bpf_loop(CLIMB_MAX, name_step, &c, 0);
	place = descend(&c);
	leave_space(c.t);
	return place;
}

INLINE u32 verdict_at(u32 node, u32 op)
{
	struct file_node *n = bpf_map_lookup_elem(&file_nodes, &node);

	return n && op < FILE_OPS ? n->verdict[op] : 1;
}

/* What the rules say about an operation on an object that is at one place and has one name.
 * The place on a known file system counts first: a mount cannot change it. The name counts
 * where a rule denies it, and alone where the place is not known. */
GLOBAL u32 decide(u64 object, u64 name, u32 op)
{
	u32 v, w;

	if (STATE(name) == PLACE_INTERNAL) {
		if (STATE(object) != PLACE_KNOWN)
			return verdict_at(NODE_UNNAMED, op);
		/* a layer of a stacked file system: its name above was checked too */
		v = verdict_at((u32)object, op);
		return BY_RULE(v) ? v : 0;
	}
	v = verdict_at(NODE_UNKNOWN, op);
	if (STATE(object) == PLACE_LOST || STATE(name) == PLACE_LOST)
		return v;
	if (STATE(name) == PLACE_KNOWN)
		w = verdict_at((u32)name, op);
	else
		w = STATE(name) == PLACE_NONE ? 0 : v;
	if (STATE(object) != PLACE_KNOWN)
		return w;
	v = verdict_at((u32)object, op);
	if (!DENIES(v) && STATE(name) == PLACE_KNOWN && DENIES(w) && BY_RULE(w))
		return w;
	return v;
}
#endif
