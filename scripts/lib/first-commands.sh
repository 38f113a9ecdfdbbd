#!/bin/sh
# Runs in the bare root of scripts/bare.sh, in a clone: what a newcomer types first, and then the
# ways to install the tools. The last line says that all passed.
set -eu
cd "$(dirname "$0")/../.."
timed() { # timed COMMAND…
	began=$(date +%s)
	"$@"
	echo "$*: took $(($(date +%s) - began)) seconds"
}
works() { # works FOLDER: the tools in it measure a command, and judge the record
	"$1/runner-exec" -q --archive /tmp/run.tar.gz -- true
	"$1/runner-verify" --require kernel=complete,drops=0 /tmp/run.tar.gz >/dev/null
	"$1/runner-show" --version
}
for program in strace shellcheck python3 node; do ! command -v $program || echo "NOT BARE: $program"; done
timed make demo
timed make test
timed make install PREFIX=/opt/runner
works /opt/runner/bin
timed make deb
dpkg --install bin/*.deb >/dev/null
works /usr/bin
dpkg --purge runner-evidence
find /usr /etc /var/lib -name '*runner-*' ! -path '/usr/local/*' | sed 's/^/LEFT BEHIND: /'
git status --porcelain | sed 's/^/LEFT BEHIND: /'
echo "all commands passed"
