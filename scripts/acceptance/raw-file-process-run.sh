#!/bin/sh
# Scenario matrix: a raw run with files and processes, no shim, no policy. The kernel layer
# is complete, and three runs have the same capability set.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/three-runs.sh
. scripts/lib/three-runs.sh

raw() {
	# shellcheck disable=SC2016 # for the measured shell
	measure "$1" -- env LC_ALL=C sh -c 'read -r line <"$0/input.txt" && echo "$line" >"$0/output.txt" && (env >/dev/null) && rm "$0/output.txt"' "$tmp/work"
}
raw once
require cgroup=clean,policy=absent,sdk=absent,correlation=clean
unambiguous
check "what it read and wrote" '.surface.filesystem_paths | contains(["'"$tmp/work/input.txt"'", "'"$tmp/work/output.txt"'"])'
check "what it executed" '.surface.process_execs | contains(["'"$(readlink -f "$(command -v env)")"'", "'"$(readlink -f "$(command -v rm)")"'"])'
three_runs raw cgroup=clean
