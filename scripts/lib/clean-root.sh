#!/bin/sh
# Started by scripts/bare.sh, of which it outlives every end: waits until nobody holds its standard
# input open for writing, kills what still runs in ROOT or in a mount namespace of
# WORK/namespaces, and removes WORK. The mounts below ROOT are in these namespaces, and end with them.
#   clean-root.sh WORK ROOT
set -u
work=$1
cat >/dev/null
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
if grep -F " $work/" /proc/self/mountinfo; then
	echo "bare: error: these mounts are left; $work is not removed" >&2
	exit 1
fi
rm -rf --one-file-system "$work"
