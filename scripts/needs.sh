#!/bin/sh
# Looks for the programs that tests call beside Go, git and make. As root on a machine with
# apt-get it installs what is missing, and says what; otherwise it names it. It fails never: the
# tests that lack a program say so. RUNNER_INSTALL=no only names.
#   scripts/needs.sh test|more   what make test calls, or what make test-more calls besides
set -eu
table='
test curl                curl             requests through runner-net
test strace              strace           an independent witness of system calls
test setcap              libcap2-bin      file capabilities
test setpriv             util-linux       runs without rights
test python3             python3          a second reader of archives
test openssl             openssl          signatures
test jq                  jq               signatures checked by hand
test rsync             rsync             an independent witness of changed directories
more shellcheck          shellcheck       the shell scripts
more clang-19            clang-19         building the BPF objects
more llvm-strip-19       llvm-19          building the BPF objects
more node                nodejs           real agents
more npm                 npm              real agents
more qemu-system-x86_64  qemu-system-x86  other kernels
more xz                  xz-utils         other kernels
more lz4                 lz4              other kernels
more debootstrap         debootstrap      the first two commands on a bare machine
more parallel            parallel         shards of a soak
more crun                crun             containers
more chromium            chromium         pages of runner-show in a browser
more runc             runc             containers
more podman             podman           containers
more busybox            busybox-static   containers
more man                 man-db           manual pages
more zsh                 zsh              completions
more fish                fish             completions
'
updated=
lacks() { # lacks PROGRAM PACKAGE WHAT…
	program=$1 package=$2
	shift 2
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || [ "${RUNNER_INSTALL:-}" = no ]; then
		echo "not installed: $program (Debian package $package), for tests of: $*"
		return
	fi
	echo "installing $package, for tests of: $*"
	[ -n "$updated" ] || apt-get update -qq >/dev/null 2>&1 || echo "apt-get update failed; going on with the lists that are here"
	updated=1
	# one by one: a package that this release does not have must not prevent the others
	DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends "$package" >/dev/null 2>&1 ||
		echo "NOT INSTALLED: $package"
}
echo "$table" | while read -r for program package what; do
	# shellcheck disable=SC2086 # words
	[ "$for" != "${1:?test or more}" ] || command -v "$program" >/dev/null || lacks "$program" "$package" $what
done
