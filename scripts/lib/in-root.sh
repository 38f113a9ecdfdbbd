#!/bin/sh
# Called by scripts/bare.sh in a mount namespace of its own, which ends with it: mounts what a
# machine has, this Go, its modules and its build cache below ROOT, and runs the commands there.
#   in-root.sh ROOT TREE GOROOT MODULES CACHE   CACHE may be empty: then the build begins with none
set -eu
root=$1 tree=$2 goroot=$3 modules=$4 cache=$5
mkdir -p "$root$goroot" "$root/modules" "$root/cache" "$root/old"
mount --bind "$root" "$root" # a root of its own, not a chroot: the kernel then names files from here
for dir in proc sys dev; do mount --rbind "/$dir" "$root/$dir"; done
mount --bind -o ro "$goroot" "$root$goroot"
mount --bind -o ro "$modules" "$root/modules"
if [ -n "$cache" ]; then mount --bind "$cache" "$root/cache"; else mount -t tmpfs none "$root/cache"; fi
cd "$root"
pivot_root . old
umount -l old
exec chroot . env -i HOME=/root TERM=dumb LANG=C.UTF-8 ${http_proxy:+"http_proxy=$http_proxy"} \
	PATH="$goroot/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
	GOCACHE=/cache GOPROXY=file:///modules/cache/download GOTOOLCHAIN=local sh "$tree/scripts/lib/first-commands.sh"
