#!/bin/sh
# Makes the manual pages and the completions of every tool from its own help.
#   scripts/manual.sh SHARE   below SHARE: man/man1, bash-completion, zsh and fish
set -eu
cd "$(dirname "$0")/.."
share=${1:?SHARE}
make=$(mktemp)
trap 'rm -f "$make"' EXIT
CGO_ENABLED=0 go build -o "$make" ./scripts/manual
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
for folder in cmd/runner-*; do
	name=$(basename "$folder")
	help=$("${BIN:-bin}/$name" --help)
	echo "$help" | "$make" man "$name" >"$share/man/man1/$name.1"
	echo "$help" | "$make" bash "$name" >"$share/bash-completion/completions/$name"
	echo "$help" | "$make" zsh "$name" >"$share/zsh/site-functions/_$name"
	echo "$help" | "$make" fish "$name" >"$share/fish/vendor_completions.d/$name.fish"
done
