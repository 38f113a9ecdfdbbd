#!/bin/sh
# make check: the checks that read the sources and run none of the tools.
#   scripts/check.sh STATICCHECK@VERSION GOVULNCHECK@VERSION
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
must() { # must WHAT COMMAND…
	what=$1
	shift
	if "$@"; then echo "ok    $what"; else echo "FAIL  $what" && bad=1; fi
}
# shellcheck disable=SC2317 # called through must
formatted() { test -z "$(gofmt -l bpf cmd schemas testdata | tee /dev/stderr)"; }

must gofmt formatted
must "go vet" go vet ./... ./testdata/workload/... ./testdata/kernels/... ./testdata/bench ./testdata/interop ./testdata/hostile ./testdata/attacks
must "go mod tidy" go mod tidy -diff
must "go mod verify" go mod verify
must staticcheck go run "$1" ./...
if vulnerable=$(go run "$2" ./... 2>&1); then
	echo "ok    govulncheck"
elif echo "$vulnerable" | grep -q 'fetching vulnerabilities: '; then
	echo "SKIPPED, NOT CHECKED: govulncheck could not fetch the known vulnerabilities: $vulnerable"
else
	echo "$vulnerable"
	echo "FAIL  govulncheck" && bad=1
fi
for os in darwin windows; do
	must "build for $os" env GOOS=$os CGO_ENABLED=0 go build -o /dev/null ./cmd/...
done
must "build for linux/arm64" env GOARCH=arm64 CGO_ENABLED=0 go build -o /dev/null ./cmd/...
if command -v shellcheck >/dev/null; then
	must shellcheck shellcheck -x scripts/*.sh scripts/*/*.sh testdata/fixtures/*.sh .ci/run
else
	echo "SKIPPED, NOT CHECKED: shellcheck is not installed"
fi
exit $bad
