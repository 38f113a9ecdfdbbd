// Package probes holds the C sources of the programs that run in the kernel. It has
// no Go code: make generate compiles the sources into package objects.
//
// The probes that observe, in reading order:
//
//	record.h            the ring record, its operations and marks, and the counters
//	table.h, sysnum.h   which system calls are recorded, and where their arguments are
//	kernel.bpf.c        the required tracepoints; the system calls at their end
//	tasks.h             the life of tasks: exec, fork, exit, moves to another cgroup
//	context.h           who and where a task is
//	special.h           calls that mount, label and attach: what they name
//	loader.h            which loader the kernel mapped for a program
//	interrupt.h         how a call that a signal interrupted ended
//	entry.h             that a call was entered
//	changes.h           what threads do to descriptors and directories that they share
//	underway.h          such changes from their entry to their end
//	begin.h             what is noted and kept then
//	again.h             whether it is one that was interrupted and starts over
//	given.h, keep.h     what it was given
//	others.h, exposed.h who else can change the memory that that is in
//	taken.h             what of it the kernel took: whether it is another at its end
//	opens.h             the end of an open
//	marks.h             what several copies of a probe share, and how misses are counted
//	way.h               the way from a file up, and whether it was renamed meanwhile
//	walk.h              from a file or directory to its path
//	guardfile.h         which files it opens for that
//	guard.h             what a program of the scope does to the measurement itself
//	addr.h              records with addresses, and what the kernel makes of those that sends are given
//	received.h          descriptors that messages bring
//	socketcalls.h       socket calls at their exit, and what they were given when they were entered
//	sock.bpf.c          IPv4 and IPv6 addresses before the call, as the kernel has them
//	unix.bpf.c          the same for unix sockets, where the kernel has those hooks
//	result.bpf.c        how connects ended that had not when their calls did
//	pathobj.h           the objects of path operations, from the lookup to the call's end
//	pathobj.bpf.c       the lookups, where the kernel lets programs see them
//	uringtypes.h        the fields of io_uring's types
//	uringcloses.h       requests that close descriptors, until it is known that they are done
//	uringrequest.h      what a request asks for
//	uringkeep.h         that, kept from its submission to its completion
//	uringtell.h         the record of a request
//	uring.bpf.c         requests of io_uring: the tracepoints, and when each request is told
//	guard.bpf.c         signals to the runner's processes
//	kernelusual.bpf.c   kernel.bpf.c once more, for the usual kernel: settings.h says why
//	uringusual.bpf.c    uring.bpf.c, likewise
//	*whole.bpf.c        objects once more, for kernels that have every part, with copies or without
//	run.h               whose event it is, where several runs share the probes
//	cgroups.h           which cgroups belong to such a run
//	*shared.bpf.c       the objects once more, for runs that share probes
//	*sharedcopies.bpf.c  those of them that differ where probes have copies
//	uringcount.bpf.c    only counts the use of io_uring, where uring.bpf.c does not load
//
// The programs that enforce network rules:
//
//	rules.h             the table of rules, and how a refused call is recorded
//	rules.bpf.c         IPv4, IPv6 and the creation of sockets
//	rulesunix.bpf.c     unix sockets
//
// The programs that enforce file rules:
//
//	filestypes.h        more fields of kernel types
//	files.h             the tables of rules, and an object's place among them
//	filesrecord.h       how a refusal is counted and recorded
//	files.bpf.c         the LSM hooks
//	lsm.bpf.c           asks whether LSM programs refuse anything here, and where objects are
//
// What all of them share: helpers.h (compiler and kernel helpers), types.h (the fields
// of kernel types), settings.h (what the loader tells them), memory.h (how types are read), loop.h (how
// something is repeated), sockaddr.h (what an address hook is given) and maps.h (the maps, and how a record is sent).
package probes

// Flags and the pinned compiler come from the Makefile (make generate). The sources are
// compiled from this folder, so that the objects hold no other path. ../internal/fewlines then
// takes the source lines out of them.

//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 Kernel kernel.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 KernelUsual kernelusual.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 KernelWhole kernelwhole.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 Sock sock.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 Unix unix.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 Result result.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 Uring uring.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 UringUsual uringusual.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 UringWhole uringwhole.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 UringCount uringcount.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 Rules rules.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 RulesUnix rulesunix.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 PathObj pathobj.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 PathObjWhole pathobjwhole.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 Guard guard.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 Files files.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 FilesWhole fileswhole.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 Lsm lsm.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 KernelShared kernelshared.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 UringShared uringshared.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 SockShared sockshared.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 UnixShared unixshared.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 ResultShared resultshared.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 GuardShared guardshared.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 PathObjShared pathobjshared.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 KernelSharedCopies kernelsharedcopies.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 UringSharedCopies uringsharedcopies.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 GuardSharedCopies guardsharedcopies.bpf.c
//go:generate go tool bpf2go -output-dir ../internal/objects -go-package objects -tags linux -target amd64,arm64 PathObjSharedCopies pathobjsharedcopies.bpf.c
