#!/bin/sh
# One measured run of the kernel-only fixture, whose every effect is known: the
# record must be complete, clean, and hold exactly those effects.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/fixture.sh
. "$(dirname "$0")/fixture.sh"

measure accepted
archive=$tmp/accepted.tar.gz
"$bin"/runner-verify --require kernel=complete,drops=0,cgroup=clean,policy=absent,sdk=absent "$archive" >/dev/null

holds() { # holds WHAT EXPRESSION
	if "$bin"/runner-verify --assert "$2" "$archive" >/dev/null; then
		echo "ok    $1"
	else
		echo "FAIL  $1: $2" && exit 1
	fi
}
same() { # same WHAT SET VALUE…: the set of the surface is exactly these values
	what=$1 set=$2 values=
	shift 2
	for value; do
		values="$values${values:+,}\"$value\""
	done
	holds "$what" ".surface.$set == ([$values] | unique)"
}
same "what it read and wrote, and its own script" filesystem_paths \
	"$tmp/work/input.txt" "$tmp/work/output.txt" /dev/null "$fixture"
same "script, interpreter, env and the dialler" process_execs \
	"$fixture" "$(readlink -f /bin/sh)" "$(readlink -f /usr/bin/env)" "$tmp/listener"
same "the listener it connected to" network_endpoints "$address"
echo "accepted: $(gzip -dc "$archive" | sha256sum | cut -c1-64)"
