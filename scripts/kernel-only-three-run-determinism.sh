#!/bin/sh
# Three measured runs of the kernel-only fixture: health, surface, report and the
# empty layers must be the same bytes, and with --canonical-pids the whole tar.
#   exit 0 same, 1 different, 40 could not be tested here
set -eu
# shellcheck source=scripts/fixture.sh
. "$(dirname "$0")/fixture.sh"

members="observation-health.json capability-surface.json correlation-report.json layers/policy.ndjson layers/sdk.ndjson events.ndjson"
for n in 1 2 3; do
	measure "run$n"
	measure "pids$n" --canonical-pids
	for archive in run pids; do
		"$bin"/runner-verify --require kernel=complete,drops=0,cgroup=clean "$tmp/$archive$n.tar.gz" >/dev/null
	done
	mkdir "$tmp/$n" && tar -xzf "$tmp/run$n.tar.gz" -C "$tmp/$n"
	gzip -dc "$tmp/pids$n.tar.gz" >"$tmp/pids$n.tar"
done
same() { # same WHAT FIRST OTHER…
	what=$1 first=$2
	shift 2
	for other; do
		cmp "$first" "$other" || { echo "FAIL  $what differs" && exit 1; }
	done
	echo "ok    $what: $(sha256sum <"$first" | cut -c1-64)"
}
for m in $members; do
	same "$m" "$tmp/1/$m" "$tmp/2/$m" "$tmp/3/$m"
done
same "whole tar with --canonical-pids" "$tmp/pids1.tar" "$tmp/pids2.tar" "$tmp/pids3.tar"
