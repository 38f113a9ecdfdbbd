#!/bin/sh
# One measured run of the kernel-only fixture, whose every effect is known: the
# record must be complete, clean, and hold exactly those effects.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/fixture.sh
. "$(dirname "$0")/fixture.sh"

measure accepted
archive=$tmp/accepted.tar.gz
bin/runner-verify --require kernel=complete,drops=0,cgroup=clean,policy=absent,sdk=absent "$archive"

holds() { # holds WHAT EXPRESSION
	if bin/runner-verify --assert "$2" "$archive" >/dev/null; then
		echo "ok    $1"
	else
		echo "FAIL  $1: $2" && exit 1
	fi
}
paths=.surface.filesystem_paths
holds "the file it read" "$paths | index(\"$tmp/work/input.txt\") != null"
holds "the file it wrote" "$paths | index(\"$tmp/work/output.txt\") != null"
holds "its own script" "$paths | index(\"$fixture\") != null"
holds "nothing else" "($paths | length) == 3"
holds "the binary it executed" ".surface.process_execs | map(select(test(\"/env\$|/coreutils\$\"))) | length == 1"
holds "the script and its interpreter, env and the dialler" ".surface.process_execs | length == 4"
holds "the listener it connected to" ".surface.network_endpoints == [\"$address\"]"
echo "accepted: $(gzip -dc "$archive" | sha256sum | cut -c1-64)"
