#!/bin/sh
# Measures the kernel-only fixture once. All of its effects are known: the record must be
# complete and clean, and hold exactly these effects.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

kernel_only accepted
require cgroup=clean,policy=absent,sdk=absent
same "what it read and wrote, and its own script" .surface.filesystem_paths \
	"$tmp/work/input.txt" "$tmp/work/output.txt" /dev/null "$fixtures/kernel-only-agent.sh"
same "the script, its interpreter, env and the program that connects" .surface.process_execs \
	"$fixtures/kernel-only-agent.sh" "$(readlink -f /bin/sh)" "$(readlink -f /usr/bin/env)" "$(readlink -f "$parts/listener")"
same "the listener that it connected to" .surface.network_endpoints "$(cat "$tmp/kernel_only.address")"
echo "accepted: $(gzip -dc "$archive" | sha256sum | cut -c1-64)"
