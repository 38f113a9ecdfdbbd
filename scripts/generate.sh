#!/bin/sh
# make generate: rebuild the committed BPF objects with the pinned compiler, and
# write the digests of sources and objects. By these a test finds, without clang, a
# source that was edited after its object was made.
#   scripts/generate.sh [--compare]   --compare fails when anything changed
set -eu
cd "$(dirname "$0")/../bpf"
digests=internal/objects/objects.sha256
for tool in "$BPF2GO_CC" "$BPF2GO_STRIP"; do
	if ! command -v "$tool" >/dev/null; then
		echo "generate: error: $tool is not installed" >&2
		echo "generate: hint: apt-get install clang-19 llvm-19" >&2
		exit 4
	fi
done
version=$("$BPF2GO_CC" --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
if [ "${1:-}" = --compare ] && [ "$(sed -n 's/^# clang //p' "$digests")" != "$version" ]; then
	echo "SKIPPED, NOT TESTED: the objects were made by clang $(sed -n 's/^# clang //p' "$digests"), here is $version"
	exit 0
fi
go generate ./probes
go run ./internal/fewlines internal/objects/*_bpfel.o
{
	echo "# clang $version"
	echo "# flags $BPF2GO_CFLAGS"
	LC_ALL=C
	export LC_ALL
	sha256sum probes/*.c probes/*.h probes/gen.go internal/fewlines/main.go internal/objects/*_bpfel.go internal/objects/*_bpfel.o
} >"$digests"
echo "generate: clang $version, $(grep -c '_bpfel.o$' "$digests") objects"
if [ "${1:-}" = --compare ]; then
	git diff --exit-code --stat -- . && echo "generate: the committed objects are what clang $version makes"
fi
