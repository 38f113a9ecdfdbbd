# shellcheck shell=sh
# Sourced after measure.sh: repeats a run and compares what it recorded.
# shellcheck disable=SC2154 # measure.sh
three_runs() { # three_runs SCENARIO REQUIREMENT: all members but the kernel layer, which holds pids
	for n in 1 2 3; do
		"$1" "run$n" >/dev/null
		require "$2" >/dev/null
		mkdir "$tmp/$n" && tar -xzf "$archive" -C "$tmp/$n"
	done
	for m in observation-health.json capability-surface.json correlation-report.json layers/policy.ndjson layers/sdk.ndjson events.ndjson; do
		for n in 2 3; do
			cmp "$tmp/1/$m" "$tmp/$n/$m" && continue
			diff "$tmp/1/$m" "$tmp/$n/$m" | head -c 4000
			for k in 1 "$n"; do # then what the kernel saw in only one of the runs
				sed 's/.*"event_type"//; s/"return_value":[0-9]*//' "$tmp/$k/layers/kernel.ndjson" | sort >"$tmp/$k/seen"
			done
			diff "$tmp/1/seen" "$tmp/$n/seen"
			fail "$m of run $n differs from run 1"
		done
		echo "ok    $m: $(sha256sum <"$tmp/1/$m" | cut -c1-64)"
	done
}
three_canonical_runs() { # three_canonical_runs SCENARIO: with --canonical-pids the whole tar
	for n in 1 2 3; do
		"$1" "pids$n" --canonical-pids >/dev/null
		require cgroup=clean >/dev/null
		gzip -dc "$archive" >"$tmp/pids$n.tar"
		cmp "$tmp/pids1.tar" "$tmp/pids$n.tar" || fail "the whole tar of run $n differs"
	done
	echo "ok    whole tar with --canonical-pids: $(sha256sum <"$tmp/pids1.tar" | cut -c1-64)"
}
