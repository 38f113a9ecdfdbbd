#!/bin/sh
# Records testdata/runs on this kernel, as root: one folder for each scenario, in which file k
# is the input of stage k and file k+1 its output.
#   scripts/record.sh [SCENARIO…]
set -eu
cd "$(dirname "$0")/.."
make -s build
work=/tmp/runner-recording
trap 'exec 9>&-; rm -rf "$work"' EXIT
rm -rf "$work" && mkdir -p "$work/tools" "$work/work" && cp testdata/fixtures/processes.sh "$work/tools/"
mkfifo "$work/open"
CGO_ENABLED=0 go build -trimpath -o "$work/tools/" ./testdata/workload/listener ./testdata/workload/shapes ./testdata/workload/dials \
	./testdata/workload/mcp-client ./testdata/workload/mcp-server ./cmd/runner-policy ./cmd/runner-proc
"$work/tools/listener" <"$work/open" >"$work/address" &
exec 9>"$work/open"
cp testdata/fixtures/kernel-only-agent.sh "$work/tools/agent.sh"
until [ -s "$work/address" ]; do sleep 0.05; done

record() { # record SCENARIO [FLAG…] -- COMMAND…
	scenario=$1
	shift
	case " $wanted " in *" $scenario "* | "  ") ;; *) return 0 ;; esac
	rm -rf "$work/work" "testdata/runs/$scenario"
	mkdir -p "$work/work" testdata/runs
	echo "known input" >"$work/work/input.txt"
	bin/runner-exec --run-id "$scenario" --archive "$work/run.tar.gz" --keep "testdata/runs/$scenario" "$@" >/dev/null 9>&-
	gzip -dc "$work/run.tar.gz" | sha256sum | cut -c1-64 >"testdata/runs/$scenario/4-identity"
}
shape() { # shape SCENARIO SHAPE [NUMBER…]
	scenario=$1 shape=$2
	shift 2
	record "$scenario" -- "$work/tools/shapes" "$shape" "$work/work" "$@"
}
wanted=$*
record kernel-only -- "$work/tools/agent.sh" "$work/work" "$work/tools/listener" "$(cat "$work/address")"
record processes --argv full -- "$work/tools/processes.sh" "$work/work" "$work/tools" "$(cat "$work/address")"
record no-kernel --no-kernel -- true
record ringbuf-pressure --ring-size 4096 -- "$work/tools/shapes" hammer "$work/work" 20000 2
shape fork-then-open fork 3
shape quick-exit quick-exit 3
shape two-siblings siblings
shape daemon daemon 100
shape thread thread
shape chroot chroot
shape escape escape
shape parallel parallel 3 7
# shellcheck source=scripts/lib/recorded-calls.sh
. scripts/lib/recorded-calls.sh
# A run without events: capture of a cgroup that stays empty, until TERM.
case " $wanted " in *" empty-run "* | "  ")
	cgroup=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)/runner-recording
	out=testdata/runs/empty-run
	mkdir -p "$cgroup" "$out"
	timeout -s TERM 3 bin/runner-capture --cgroup "$cgroup" --run-id empty-run >"$out/1-raw.ndjson" || [ $? = 124 ]
	rmdir "$cgroup"
	bin/runner-normalize "$out/1-raw.ndjson" >"$out/2-kernel.ndjson"
	bin/runner-correlate "$out/2-kernel.ndjson" >"$out/3-joined.ndjson"
	bin/runner-pack -o - "$out/3-joined.ndjson" | gzip -dc | sha256sum | cut -c1-64 >"$out/4-identity"
	;;
esac
