# shellcheck shell=sh
# Sourced by the kernel-only scripts: a work folder, a listener outside the
# measured run, and one function that measures the fixture. Exits 40, loudly,
# where the kernel cannot be observed.
cd "$(dirname "$0")/.." || exit 1
fixture=$PWD/testdata/fixtures/kernel-only-agent.sh
bin=${BIN:-bin} # tests bring their own
[ -n "${BIN:-}" ] || make -s build || exit 1
if ! why=$("$bin"/runner-capture --probe 2>&1); then
	echo "SKIPPED, NOT TESTED: this kernel cannot be observed: $why"
	exit 40
fi

tmp=$(cd "$(mktemp -d)" && pwd -P) || exit 1
mkfifo "$tmp/open" && mkdir "$tmp/work" || exit 1
CGO_ENABLED=0 go build -o "$tmp/listener" ./testdata/workload/listener || exit 1
"$tmp/listener" <"$tmp/open" >"$tmp/address" &
exec 9>"$tmp/open" # the listener lives as long as this descriptor
trap 'exec 9>&-; rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
tries=0
until [ -s "$tmp/address" ]; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || { echo "the listener did not start"; exit 1; }
	sleep 0.05
done
address=$(cat "$tmp/address")
echo "known input" >"$tmp/work/input.txt"

measure() { # measure NAME [FLAG…] writes $tmp/NAME.tar.gz
	name=$1
	shift
	rm -f "$tmp/work/output.txt"
	"$bin"/runner-exec --run-id kernel_only --archive "$tmp/$name.tar.gz" "$@" -- \
		"$fixture" "$tmp/work" "$tmp/listener" "$address" 9>&-
}
