#!/bin/sh
# Builds the helper that suites of the process API require, and puts it at the paths that they name.
#   build-os-helpers.sh [DIR]    DIR: where the paths start, the --root of runner-suite (default .)
# The same source gives the same files: without paths of this machine, with a fixed mode and time.
set -eu
home=$(cd "$(dirname "$0")/.." && pwd)
root=$(cd "${1:-.}" && pwd)
cd "$home"
umask 022
for name in deps/x07/x07-proc-echo deps/evolang/evolang-proc-echo; do
	mkdir -p "$root/${name%/*}"
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags -buildid= -o "$root/$name" ./testdata/workload/proc-echo
	chmod 0755 "$root/$name"
	touch -t 200001010000.00 "$root/$name"
	(cd "$root/${name%/*}" && sha256sum "${name##*/}") >"$root/$name.sha256"
	echo "$root/$name"
done
