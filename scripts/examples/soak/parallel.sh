#!/bin/sh
# A soak in shards on one machine, with GNU parallel; then the report of all.
#   parallel.sh SHARDS ITERATIONS COMMAND [ARG…]
#   exit: that of runner-soak --merge
set -eu
bin=${BIN:-$(dirname "$0")/../../../bin}
out=${OUT:-soak}
shards=$1 iterations=$2
shift 2
mkdir -p "$out"
rm -f "$out"/shard-*.json # of an earlier call: a shard that fails to write its own is then missing
# A shard with a failing run ends with 1; what that means is said by the merged report.
seq "$shards" | parallel --will-cite -q -I @SHARD@ "$bin/runner-soak" -q --iterations "$iterations" --seed 1 \
	--shard "@SHARD@/$shards" --dir "$out/@SHARD@" --report "$out/shard-@SHARD@.json" -- "$@" >/dev/null || true
exec "$bin/runner-soak" --report "$out/soak.json" --merge "$out"/shard-*.json
