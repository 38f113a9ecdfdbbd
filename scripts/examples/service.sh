#!/bin/sh
# Measures for a while what runs already: a systemd unit, a container or any cgroup. What its
# processes did before is not known, and the record says so.
#   service.sh UNIT|CGROUP SECONDS   such as: service.sh ssh.service 60
#   exit: 0 the record is whole, 1 it is not, or as the tools say
set -eu
bin=${BIN:-$(dirname "$0")/../../bin}
archive=${ARCHIVE:-service.tar.gz} unit=${1:?UNIT or CGROUP} seconds=${2:?SECONDS}
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo # for runner-capture only

case $unit in
/*) cgroup=$unit ;;
*) # systemd says where below the mount of cgroup v2
	cgroup=$(systemctl show -P ControlGroup "$unit")
	[ -n "$cgroup" ] || { echo "service: $unit does not run" >&2 && exit 1; }
	cgroup=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)$cgroup
	;;
esac

# Each stage is a process. TERM lets runner-capture seal what it has; a stage that did not get
# the seal writes nothing.
$sudo timeout -s TERM "$seconds" "$bin/runner-capture" --cgroup "$cgroup" |
	"$bin/runner-normalize" | "$bin/runner-correlate" | "$bin/runner-pack" -o "$archive"
"$bin/runner-show" "$archive"
"$bin/runner-verify" --require kernel=complete,drops=0 "$archive" >/dev/null
