#!/bin/sh
# make generate: rebuild the committed BPF objects with the pinned compiler, and
# write the digests of sources and objects, by which a test without clang finds
# an edited source beside a stale object.
#   scripts/generate.sh [--compare]   --compare fails when anything changed
set -eu
cd "$(dirname "$0")/../bpf"
for tool in "$BPF2GO_CC" "$BPF2GO_STRIP"; do
	if ! command -v "$tool" >/dev/null; then
		echo "generate: error: $tool is not installed" >&2
		echo "generate: hint: apt-get install clang-19 llvm-19" >&2
		exit 4
	fi
done
version=$("$BPF2GO_CC" --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
if [ "${1:-}" = --compare ] && [ "$(sed -n 's/^# clang //p' objects.sha256)" != "$version" ]; then
	echo "SKIPPED, NOT TESTED: the objects were made by clang $(sed -n 's/^# clang //p' objects.sha256), here is $version"
	exit 0
fi
go generate .
{
	echo "# clang $version"
	echo "# flags $BPF2GO_CFLAGS"
	LC_ALL=C
	export LC_ALL
	sha256sum ./*.c ./*.h ./gen.go ./*_bpfel.go ./*_bpfel.o
} >objects.sha256
echo "generate: clang $version, $(grep -c '_bpfel.o$' objects.sha256) objects"
if [ "${1:-}" = --compare ]; then
	git diff --exit-code --stat -- . && echo "generate: the committed objects are what clang $version makes"
fi
