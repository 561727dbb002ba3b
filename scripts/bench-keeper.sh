#!/usr/bin/env bash
# The figures of the keeper against OpenSSH's own multiplexing (ControlMaster) on
# the same host and in the same run: on loopback, and through a proxy that adds
# 50 ms each way. Run by bench.sh, as root, since it starts a server of its own.
set -euo pipefail
n=${N:-9}
port=$((20000 + RANDOM % 20000))
mkdir -p "$WORK/home" "$WORK/rt" /run/sshd
chmod 700 "$WORK/rt"
export AFIELD_KEEP=5m XDG_RUNTIME_DIR=$WORK/rt
ssh-keygen -q -t ed25519 -N '' -f "$WORK/host"
ssh-keygen -q -t ed25519 -N '' -f "$WORK/id"
cat > "$WORK/sshd_config" <<CONF
Port $port
ListenAddress 127.0.0.1
HostKey $WORK/host
AuthorizedKeysFile $WORK/id.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
MaxStartups 200
SetEnv HOME=$WORK/home
Subsystem sftp internal-sftp
CONF
/usr/sbin/sshd -D -e -f "$WORK/sshd_config" 2> "$WORK/sshd.log" &
server=$!
go build -o bin/delay ./scripts/delay
bin/delay 127.0.0.1:$((port + 1)) 127.0.0.1:$port 50ms &
proxy=$!
trap 'afield keeper stop --all; kill $server $proxy' EXIT
until grep -q listening "$WORK/sshd.log"; do sleep 0.1; done
for host in near far; do
  cat >> "$WORK/config" <<CONF
Host $host
  HostName 127.0.0.1
  Port $([ $host = near ] && echo "$port" || echo $((port + 1)))
  User root
  IdentityFile $WORK/id
  IdentitiesOnly yes
  UserKnownHostsFile $WORK/known
  StrictHostKeyChecking accept-new
CONF
  printf 'version: 1\nbackend: ssh\nconfig: {host: %s, configFile: %s}\n' "$host" "$WORK/config" > "$WORK/$host.yaml"
done
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
