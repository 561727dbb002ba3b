#!/usr/bin/env bash
# The figures of the keeper against OpenSSH's own multiplexing (ControlMaster) on
# the same host and in the same run: on loopback, and through a proxy that adds
# 50 ms each way. Run by bench.sh, as root, since it starts a server of its own.
set -euo pipefail
n=${N:-9}
mkdir -m 700 "$WORK/rt"
export AFIELD_KEEP=5m XDG_RUNTIME_DIR=$WORK/rt
. scripts/hosts.sh 50ms
trap 'afield keeper stop --all; kill $server $proxy' EXIT
echo hello > "$WORK/home/small"
echo x > "$WORK/home/edited"

# rss PID prints the resident memory in MiB.
rss() { awk '/^VmRSS/ { printf "%.1f MiB\n", $2 / 1024 }' "/proc/$1/status"; }
pid() { afield "$@" keeper status --json | sed 's/.*"pid":\([0-9]*\).*/\1/'; }

for host in near far; do
  mux="ssh -F $WORK/config -o ControlPath=$WORK/rt/$host.sock $host" af="afield --profile-file $WORK/$host.yaml"
  ssh -F "$WORK/config" -o ControlMaster=yes -o "ControlPath=$WORK/rt/$host.sock" -o ControlPersist=300 -fN $host
  echo "== $host"
  measure -n "$n" -sh "first command, keeper off and on" "<= off + 50 ms" \
    "XDG_RUNTIME_DIR=\$(mktemp -d $WORK/rt/XXXXXX) AFIELD_KEEP=off $af fs read small >/dev/null" \
    "XDG_RUNTIME_DIR=\$(mktemp -d $WORK/rt/XXXXXX) AFIELD_KEEP=1s $af fs read small >/dev/null"
  $af fs read small >/dev/null; sleep 2; $af fs read small >/dev/null
  measure -n "$n" -sh "warm fs read, small" "near <= 1.0, far <= 250 ms" "$mux cat $WORK/home/small >/dev/null" "$af fs read small >/dev/null"
  measure -n "$n" -sh "warm exec true" "<= 1.0" "$mux true" "$af exec -n -- true"
  measure -n "$n" -sh "warm edit" "far <= 400 ms" "$mux cat $WORK/home/edited >/dev/null" "$af fs edit edited --old x --new yx >/dev/null"
  ssh -F "$WORK/config" -o "ControlPath=$WORK/rt/$host.sock" -O exit $host 2>/dev/null
done
af="afield --profile-file $WORK/near.yaml"
measure -n 1 -sh "100 commands in a row" "<= 0.2 of fresh ssh" \
  "for i in \$(seq 100); do ssh -F $WORK/config near cat $WORK/home/small; done >/dev/null" "for i in \$(seq 100); do $af fs read small; done >/dev/null"
echo "idle keeper with an ssh connection (<= 30 MiB): $(rss "$(pid --profile-file "$WORK/near.yaml")")"

for i in $(seq 50); do
  afield term open -- sh -c 'head -c 1048576 /dev/zero | tr "\0" x; read -r end' >/dev/null
done
for id in $(afield term list | cut -d' ' -f1); do
  until [ "$(afield term read "$id" --from 1048575 --wait 30s --max-bytes 4 | wc -c)" -gt 0 ]; do :; done
done
echo "50 terminals with 1 MiB each (<= 120 MiB): $(rss "$(pid)")"
