#!/bin/sh
# A gate for CI: runs the tests of a project, and fails if they fail, if the record is not whole, or
# if anything touched a key or spoke to another machine.
#   ci-gate.sh COMMAND [ARG…]
#   exit: that of the command, or 1 if the record is not as demanded
set -eu
bin=${BIN:-$(dirname "$0")/../../bin}
archive=${ARCHIVE:-ci.tar.gz}
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo # for the probes only: the command runs as you

code=0
$sudo "$bin/runner-exec" --archive "$archive" -- "$@" || code=$?
[ $code = 0 ] || exit $code

# .value is a path or an endpoint; of a rename it is an array with both.
"$bin/runner-verify" --require 'kernel=complete,drops=0,cgroup=clean,events>0' \
	--assert 'all(.kernel[]; .value | tostring | test("/\\.(ssh|aws|gnupg)/") | not)' \
	--assert 'all(.surface.network_endpoints[]; test("^(127\\.|\\[::1\\]|unix:)"))' \
	"$archive" && exit
echo "ci-gate: what it did: $bin/runner-show --net --reads $archive" >&2
exit 1
