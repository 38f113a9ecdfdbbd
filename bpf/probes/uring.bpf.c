//go:build ignore
/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* io_uring: a request is kept at submission, where the kernel's own copy of the path is, and
 * recorded at completion, where its result is. An open is recorded earlier if the next request
 * is submitted in the meantime: that one could close the descriptor. A request that its program
 * wants no completion of is recorded at once, and one that the kernel refuses to prepare when it
 * does so. Connects and datagrams also pass the cgroup hooks. A separate object, because
 * tracepoints and structures change between kernels. There is one program for each form of a
 * tracepoint; the loader (../uring_linux.go) compares the kernel's with them, and loads those
 * that fit. */
#include "addr.h"
#include "changes.h"
#include "guard.h"
#include "marks.h"
#include "uringcloses.h"
#include "uringkeep.h"
#include "uringtell.h"

enum { MAP_FULL = -7 /* E2BIG */ };

/* Takes out a request at this address that is known to be another one. */
INLINE void forget(u64 req, struct request *q)
{
	struct counters *c = q->life == life_of(q->run) ? counters_in(q->run, SLOT_URING_SUBMIT) : NULL;

	if (c && !(q->state & (STATE_TOLD | STATE_CANCELLED)))
		__sync_fetch_and_add(&c->io_uring_unmapped, 1);
	bpf_map_delete_elem(&requests, &req);
}

INLINE u64 user_data_of(u64 req)
{
	return POINTER(io_kiocb, req, cqe.user_data);
}

INLINE bool same_request(struct request *q, u64 req)
{
	return q->ring == POINTER(io_kiocb, req, ctx) && q->user_data == user_data_of(req);
}

/* The request before this one may be done, in this task, and may be an open. What this one and
 * those after it do comes later: the descriptor has the file that was opened. */
INLINE void settle_last(u64 req, u32 at, u32 of_copy)
{
	u64 last = POINTER(io_ring_ctx, POINTER(io_kiocb, req, ctx), submit_state.compl_reqs.last);
	u64 key = last - OFFSET(struct io_kiocb, comp_list);
	struct request *q;
	s32 res = -1;

	if (!last)
		return;
	q = bpf_map_lookup_elem(&requests, &key);
	if (!q || !is_open(q->op) || q->file_slot || q->state || !same_request(q, key) || !is_told(q->run, q->life))
		return;
	READ(res, (struct io_kiocb *)key, cqe.res);
	if (res < 0)
		return;
	tell(key, res, at, 0, of_copy);
	bpf_map_delete_elem(&requests, &key);
}

/* Requests that have their record make room for others. */
static long drop_told(void *map, u64 *key, struct request *q, void *unused)
{
	if (q->state & STATE_TOLD)
		bpf_map_delete_elem(&requests, key);
	return 0;
}

INLINE void submitted(u64 req)
{
	u32 of_copy = copied_tasks ? COPY_OF(submit) : 0, flags = 0;
	struct counters *c = counters_of(SLOT_URING_SUBMIT);
	struct request *q;
	u8 opcode = 0;
	bool later;
	long err;

	if (!c)
		return;
	settle_last(req, AT_SUBMIT, of_copy);
	q = bpf_map_lookup_elem(&requests, &req);
	if (q)
		forget(req, q);
	note_closed(req);
	READ(opcode, (struct io_kiocb *)req, opcode);
	READ(flags, (struct io_kiocb *)req, flags);
	later = is_later(req, flags);
	if (opcode == OPCODE_CLOSE)
		note_close(req, later);
	q = begin_request(AT_SUBMIT, of_copy, c);
	if (!q || !ask_request(q, req, opcode))
		return;
	if (q->op == OP_IO_URING_OTHER)
		__sync_fetch_and_add(&c->io_uring_unmapped, 1);
	keep_names(q, scratch_at(scratch_of(AT_SUBMIT, of_copy)));
	q->ring = POINTER(io_kiocb, req, ctx);
	q->user_data = user_data_of(req);
	if (later)
		q->state |= STATE_LATER;
	if (flags & ENTRY_SILENT) {
		tell(req, 0, AT_SUBMIT, NO_RESULT, of_copy);
		q->state |= STATE_TOLD;
	}
	err = bpf_map_update_elem(&requests, &req, q, 0);
	if (err == MAP_FULL && !(q->state & STATE_TOLD)) {
		bpf_for_each_map_elem(&requests, drop_told, NULL, 0);
		err = bpf_map_update_elem(&requests, &req, q, 0);
	}
	if (err && !(q->state & STATE_TOLD))
		__sync_fetch_and_add(&c->io_uring_unmapped, 1);
}

/* A request that the kernel refuses to prepare is not submitted. */
INLINE void failed(u64 entry, u64 req, s64 err)
{
	u32 of_copy = copied_tasks ? COPY_OF(submit) : 0;
	struct counters *c = counters_of(SLOT_URING_FAILED);
	struct user_entry *e;
	struct request *q;

	if (!c)
		return;
	settle_last(req, AT_FAILED, of_copy);
	q = bpf_map_lookup_elem(&requests, &req);
	if (q)
		forget(req, q);
	q = begin_request(AT_FAILED, of_copy, c);
	if (!q)
		return;
	e = (void *)q->base2; /* not used yet, and the stack is small */
	if (bpf_probe_read_kernel(e, sizeof(*e), (void *)entry)) {
		__sync_fetch_and_add(&c->io_uring_unmapped, 1);
		return;
	}
	if (!ask_refused(q))
		return;
	keep_names(q, scratch_at(scratch_of(AT_FAILED, of_copy)));
	tell(req, err, AT_FAILED, 0, of_copy);
}

/* Has the task other descriptors and directories than the one that submitted it? */
INLINE bool elsewhere(struct request *q)
{
	return descriptors() != q->files || POINTER(task_struct, bpf_get_current_task(), fs) != q->fs;
}

INLINE void completed(u64 req, s64 res)
{
	struct request *q = bpf_map_lookup_elem(&requests, &req);
	u32 how = 0;

	if (!q)
		return;
	if (!same_request(q, req)) {
		forget(req, q);
		return;
	}
	if (q->life == life_of(q->run) && !is_told(q->run, q->life))
		return; /* that run has ended, and counts what it finds here */
	if (!(q->state & STATE_TOLD) || res < 0) {
		if (q->state & STATE_TOLD)
			how |= WAS_SILENT;
		if (q->state & STATE_APART || q->apart != times_apart()) /* or it has another table by now, where its own was */
			how |= ELSEWHERE | OTHER_ROOT;
		else if (elsewhere(q))
			how |= ELSEWHERE;
		tell(req, res, AT_COMPLETE, how, q->complete_copy);
	}
	bpf_map_delete_elem(&requests, &req);
}

INLINE void add_state(u64 req, u32 state)
{
	struct request *q = bpf_map_lookup_elem(&requests, &req);

	if (q)
		q->state |= state;
}

/* Is this the first copy that runs for this submission, or for the failure to prepare one? */
INLINE bool first_copy(u64 req)
{
	u64 ring = POINTER(io_kiocb, req, ctx);
	u32 head = 0;

	READ(head, (struct io_ring_ctx *)ring, cached_sq_head);
	return first_at_submit(ring, head);
}

/* A copy that runs later does not find the request any more. */
INLINE bool first_at_completion(u64 key)
{
	struct request *q = bpf_map_lookup_elem(&requests, &key);

	if (q)
		q->complete_copy = copy;
	return q;
}

/* Memory that another program's request has now is no request of the scope any more. */
INLINE bool in_scope_now(u64 req, u32 slot)
{
	struct request *q;

	if (present_in_scope(slot))
		return true;
	note_closed(req);
	q = bpf_map_lookup_elem(&requests, &req);
	if (q)
		forget(req, q);
	return false;
}

BODY(submit_body);
BODY(failed_body);
BODY(complete_body);

/* A body does what is to be done with a tail call first (STACK_OF_TASK). */
#ifdef USUAL
#define BODY_PROGRAM(form, tracepoint, body, work)
#else
#define BODY_PROGRAM(form, tracepoint, body, work)                       \
	SEC("tp_btf/" tracepoint)                                        \
	int body_##form(u64 *ctx)                                        \
	{                                                                \
		STACK_OF_TASK(ctx, body);                                \
		work;                                                    \
		return 0;                                                \
	}
#endif

#define SUBMIT(form, tracepoint)                                         \
	BODY_PROGRAM(form, tracepoint, submit_body, submitted(address(ctx, 0))) \
	INLINE int at_##form(u64 *ctx, bool copied)                      \
	{                                                                \
		if (!in_scope_now(address(ctx, 0), SLOT_URING_SUBMIT))   \
			return 0;                                        \
		if (!copied)                                             \
			submitted(address(ctx, 0));                      \
		else if (first_copy(address(ctx, 0)))                    \
			go_on(ctx, &submit_body, SLOT_URING_SUBMIT);     \
		return 0;                                                \
	}                                                                \
	PROBE(tracepoint, form, at_##form)

#define COMPLETE(form, result)                                           \
	BODY_PROGRAM(form, "io_uring_complete", complete_body, completed(ctx[1], result(ctx))) \
	INLINE int at_##form(u64 *ctx, bool copied)                      \
	{                                                                \
		note_closed(ctx[1]);                                     \
		if (!copied)                                             \
			completed(ctx[1], result(ctx));                  \
		else if (first_at_completion(ctx[1]))                    \
			go_on(ctx, &complete_body, SLOT_URING_COMPLETE); \
		return 0;                                                \
	}                                                                \
	PROBE("io_uring_complete", form, at_##form)

INLINE s64 result_of_cqe(u64 *ctx)
{
	s32 res = 0;

	READ_FIELD(res, io_uring_cqe, address(ctx, 2), res);
	return res;
}

INLINE s64 result_itself(u64 *ctx)
{
	return (s32)ctx[3];
}

SUBMIT(submit_req, "io_uring_submit_req") /* since Linux 6.3 */
SUBMIT(submit_sqe, "io_uring_submit_sqe") /* its name and form before */
COMPLETE(complete_cqe, result_of_cqe) /* since some release between Linux 6.12 and 6.16 */
COMPLETE(complete_res, result_itself) /* its form before */

BODY_PROGRAM(req_failed, "io_uring_req_failed", failed_body, failed(address(ctx, 0), address(ctx, 1), (s32)ctx[2]))

INLINE int at_failed(u64 *ctx, bool copied)
{
	if (!in_scope_now(address(ctx, 1), SLOT_URING_FAILED))
		return 0;
	if (!copied)
		failed(address(ctx, 0), address(ctx, 1), (s32)ctx[2]);
	else if (first_copy(address(ctx, 1)))
		go_on(ctx, &failed_body, SLOT_URING_FAILED);
	return 0;
}

PROBE("io_uring_req_failed", req_failed, at_failed)

/* A worker will carry it out. */
SEC("tp_btf/io_uring_queue_async_work")
int on_queue_async(u64 *ctx)
{
	add_state(address(ctx, 0), STATE_LATER | (times_apart() ? STATE_APART : 0));
	note_queued(address(ctx, 0));
	return 0;
}

/* It will not be carried out, because one before it failed. Its program is told so, or, if it
 * wanted no completion of that one, nothing. */
SEC("tp_btf/io_uring_fail_link")
int on_fail_link(u64 *ctx)
{
	add_state(address(ctx, 1), STATE_CANCELLED);
	return 0;
}
