#!/bin/sh
# make test-kernels: boots other kernels in QEMU and checks the tools there.
#   scripts/kernels.sh [FLAG…] [KERNEL…]   -h prints the flags and the exit codes
set -u
cd "$(dirname "$0")/.." || exit 5
dir=$(mktemp -d) || exit 5
trap 'rm -rf "$dir"' EXIT
trap 'exit 5' INT TERM
go build -o "$dir/kernels" ./testdata/kernels || exit 5
"$dir/kernels" "$@"
