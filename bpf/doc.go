// Package bpf has the probes and their loader. It produces the records of what happens in a
// cgroup, and counts what it could not observe. Only runner-capture links it.
//
// Read it in this order:
//
//	probes/gen.go        the C sources, which run in the kernel, and what each one does
//	session_linux.go     loads and attaches them; the end
//	objects_linux.go     the objects, and the forms of those that are there several times
//	kernelbtf_linux.go   the kernel's types; fewtypes.go makes them few, and so quick to decode
//	load_linux.go        the ways to load an object, and which one this kernel takes
//	uring_linux.go       io_uring's probes: uring_form_linux.go chooses them by the kernel's types
//	pathobj_linux.go     the functions of the kernel that look paths up, and whether calls use them
//	preemption_linux.go  finds out where the kernel skips a probe, because a task is preempted in it
//	redundant_linux.go   the copies of the probes there
//	shared_linux.go      probes that several runs share: whether a run does, and where they are
//	sharedset_linux.go   such a set: loaded once, pinned, opened by each run
//	sharedrun_linux.go   a run's place in it, from its start to its end
//	sharedgone_linux.go  runs that are gone: found, and taken out of the tables
//	sharedalone_linux.go how a run knows that it is not the only one
//	counters_linux.go    what was seen, dropped and missed
//	guard_linux.go       what root inside of the cgroup can do to the probes: prevented, or told
//	rules_linux.go       network rules as the kernel's table
//	files_linux.go       file rules as the kernel's tables: filetree.go has their paths,
//	                     filemounts_linux.go what shows them, lsm_linux.go asks the kernel
//	ring_linux.go        reads the ring, of which it maps a window
//	decode.go            from a ring record to a raw event
//	internal/fewlines    takes the source lines out of compiled probes (make generate)
//	internal/objects     the compiled probes: all generated, nothing to read
//
// What is hooked, why, and what is lost without it:
//
//	tp_btf/sys_exit            every recorded system call at its end: arguments from the saved
//	                           registers, the return value, and for a success the file that was
//	                           installed. Required. Misses calls made through io_uring and through
//	                           the x32 ABI (the latter are counted).
//	tp_btf/sys_enter           that a recorded call was entered, and with what (probes/entry.h): a call that
//	                           seccomp or a tracer answered was never done. Required.
//	tp_btf/sched_process_exec  an exec that succeeded, with the kernel's own copy of the name and the
//	                           path of the binary. Required.
//	tp_btf/sched_process_fork  the task tree. Required: order and canonical pids come from it.
//	tp_btf/sched_process_exit  the end of a task. Required, for the reuse of ids.
//	tp_btf/cgroup_attach_task  a move out of the scope. Required.
//	tp_btf/cgroup_mkdir and    only of shared probes: which cgroups belong to a run. Required there.
//	cgroup_rmdir
//	cgroup/connect4,6 and      the kernel's copy of an address before the call is made, io_uring's too.
//	cgroup/sendmsg4,6          Required. They run for the socket's cgroup, so they do not see a socket
//	                           that was made outside and handed in.
//	cgroup/connect_unix and    the same for unix sockets (Linux 6.7). Optional: without them unix
//	cgroup/sendmsg_unix        connections made through io_uring are not seen.
//	cgroup sock_ops            the result of a TCP connect that was pending at the end of its call. Optional: without
//	                           it, such a connect stays pending. For sockets made in the scope, as above.
//	tp_btf/io_uring_submit_req paths of io_uring operations at submission (io_uring_submit_sqe before
//	and io_uring_complete,     Linux 6.3), results at completion; requests that the kernel refuses to
//	io_uring_req_failed,       prepare; and which of them a worker carries out, or nobody, because one
//	queue_async_work,          that they were linked to failed. Optional: where the kernel has them
//	fail_link                  in no known form, io_uring_create is counted.
//	fexit/__filename_parentat  what a path operation (unlink, mkdir, rename, chmod …) looks up.
//	or path_parentat, and      Optional: without them, or where the kernel refuses such programs,
//	fexit/filename_lookup      these paths are text. They count no events.
//	cgroup/connect, sendmsg,   only with network rules: a second program at each of the hooks above,
//	bind4,6 and sock_create    which refuses. The hooks of bind and sock_create are attached if a
//	                           rule needs them. With rules, all of these are required, so that
//	                           nothing runs under rules that are not enforced.
//	tp_btf/signal_generate     signals from the scope to the runner's processes. Required.
//	lsm/file_open, path_…,     only with file rules: refuse what the rules deny, in the task that
//	inode_…, sb_…, move_mount  makes the call, io_uring's too. Which of them there are is read
//	                           from the kernel's types. Before, one of them must refuse an open:
//	                           a kernel can attach such a program and never run it.
//	                           Without ftrace it no longer does: to write there is an alarm.
//	tp_btf/signal_deliver      whether a call that a signal interrupted starts over by itself, or the
//	                           program gets EINTR. Required.
//
// Root inside of the cgroup can reach all of this with bpf(), ptrace, signals and /proc. Links of
// tracepoints cannot be detached but by their owner; maps are frozen; and what a task of the
// scope did to the runner is an alarm that cannot be taken back (probes/guard.h).
//
// Raw tracepoints with BTF need neither tracefs nor kprobes nor trampolines, which
// hardened kernels refuse. Paths come from our own walk over dentries and mounts
// (probes/walk.h), because bpf_d_path is not allowed there.
package bpf
