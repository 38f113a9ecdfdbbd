#!/bin/sh
# Scenario matrix: a raw run where nothing can be observed. On Linux it is a run without
# capture, and then the stream of another platform through the same stages. The archive
# is always valid and has kernel_layer=absent.
#   exit 0 accepted, 1 not
set -eu
cd "$(dirname "$0")/../.."
[ -n "${BIN:-}" ] || make -s build
bin=${BIN:-bin}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
degraded() { # degraded ARCHIVE PLATFORM
	"$bin"/runner-verify --require kernel=absent,cgroup=partial,policy=absent,sdk=absent \
		--assert '.health.platform == "'"$2"'"' --assert '.health.kernel_layer == "absent"' "$1" >/dev/null
	echo "ok    $2: a valid archive without a kernel layer"
}
case $(uname -s) in Linux) here=linux ;; Darwin) here=macos ;; *) here=windows ;; esac
"$bin"/runner-exec --no-kernel --archive "$tmp/run.tar.gz" -- sh -c 'cat README.md >/dev/null'
degraded "$tmp/run.tar.gz" $here
for platform in macos windows; do
	sed '1d;$d;s/"platform":"linux"/"platform":"'$platform'"/' testdata/runs/no-kernel/1-raw.ndjson |
		scripts/seal.sh kernel.raw no-kernel partial | "$bin"/runner-normalize | "$bin"/runner-correlate | "$bin"/runner-pack -o "$tmp/$platform.tar.gz"
	degraded "$tmp/$platform.tar.gz" $platform
done
