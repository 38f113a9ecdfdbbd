#!/bin/sh
# Reads record lines and writes them as a stream, with a header and a trailer. For streams
# written by hand: the header names this script as the tool.
#   scripts/seal.sh STREAM RUN_ID [complete|partial] < records > stream.ndjson
set -eu
if [ $# -lt 2 ]; then
	sed -n '2,4s/^# *//p' "$0" >&2
	exit 2
fi
body=$(mktemp)
trap 'rm -f "$body"' EXIT
printf '{"schema":"runner.stream_header.v0","stream":"%s","run_id":"%s","tool":"seal.sh","version":"hand-made"}\n' "$1" "$2" >"$body"
cat >>"$body"
lines=$(wc -l <"$body")
sum=$(sha256sum <"$body")
cat "$body"
printf '{"schema":"runner.stream_trailer.v0","stream":"%s","run_id":"%s","records":%d,"sha256":"%s","status":"%s"}\n' \
	"$1" "$2" "$((lines - 1))" "${sum%% *}" "${3:-complete}"
