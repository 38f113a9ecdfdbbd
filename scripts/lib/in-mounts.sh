#!/bin/sh
# Started by scripts/bare.sh in a mount namespace of its own, with descriptor 9 open to clean-root.sh: tells that one of the
# namespace, waits until it holds it, and becomes the command.
#   in-mounts.sh WORK COMMAND...
set -eu
held=$1/held.$$
shift
echo $$ >&9
exec 9>&-
tries=0
until [ -e "$held" ]; do
	tries=$((tries + 1))
	[ $tries -lt 3000 ] || { echo "bare: error: clean-root.sh does not answer" >&2 && exit 1; }
	sleep 0.01
done
exec "$@"
