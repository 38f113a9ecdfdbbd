#!/bin/sh
# Started by scripts/bare.sh, of which it outlives every end: waits until nobody holds its standard
# input open for writing, kills what still runs in ROOT or in a mount namespace that it was told of, and
# removes WORK. The mounts below ROOT are in these namespaces, and end with them.
# A line of the input is a process in a new mount namespace, of which there are at most three. It is held open, or
# its number could be that of somebody else's by then, and noted; then WORK/held.PROCESS is made.
#   clean-root.sh WORK ROOT
set -u
work=$1 next=3
while read -r process; do
	eval "command exec $next</proc/$process/ns/mnt" || continue # it has ended, and did nothing
	next=$((next + 1))
	readlink "/proc/$process/ns/mnt" >>"$work/namespaces"
	: >"$work/held.$process"
done
own=$(readlink /proc/self/ns/mnt) machine=$(stat -Lc %d:%i /) root=$(stat -Lc %d:%i "$2" || echo none)
inside() { # inside PROC: this process has this root, and not the machine's
	its=$(stat -Lc %d:%i "$1/root") && [ "$its" != "$machine" ] && [ "$its" = "$root" ] && return
	namespace=$(readlink "$1/ns/mnt") && [ "$namespace" != "$own" ] && grep -qxF "$namespace" "$work/namespaces"
} 2>/dev/null
again=1
while [ -n "$again" ]; do
	again=
	for process in /proc/[0-9]*; do
		! inside "$process" || { again=1 && kill -KILL "${process#/proc/}"; }
	done
	[ -z "$again" ] || sleep 0.1
done
exec 3<&- 4<&- 5<&- # the namespaces end now
if grep -F " $work/" /proc/self/mountinfo; then
	echo "bare: error: these mounts are left; $work is not removed" >&2
	exit 1
fi
rm -rf --one-file-system "$work"
