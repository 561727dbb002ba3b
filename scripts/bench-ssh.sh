#!/usr/bin/env bash
# The ssh rows of the performance budget, against OpenSSH's own client with the
# same key and no multiplexing: on loopback, and through a proxy that adds 50 ms
# each way. Run by bench.sh, as root, since it starts a server of its own.
set -euo pipefail
n=${N:-9}
port=$((20000 + RANDOM % 20000))
mkdir -p "$WORK/home" /run/sshd
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
trap 'kill $server $proxy' EXIT
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
mkdir "$WORK/home/many"
(cd "$WORK/home/many" && seq 2000 | xargs touch)
head -c 256M /dev/urandom > "$WORK/home/big"

for host in near far; do
  ssh="ssh -F $WORK/config $host" af="afield --profile-file $WORK/$host.yaml"
  $ssh true; $af exec -n -- true
  echo "== $host"
  measure -n "$n" -sh "fs read, small" "near <= 1.1, far <= peer + 200 ms" "$ssh cat small >/dev/null" "$af fs read small >/dev/null"
  measure -n "$n" -sh "exec true" "<= peer + 20 ms" "$ssh true" "$af exec -n -- true"
  measure -n 3 -sh "list of 2000" "far <= 0.2" "echo ls -l many | sftp -b - -F $WORK/config $host >/dev/null" "$af fs ls many >/dev/null"
  measure -n 3 -sh -speed "read 256 MiB" "near >= 0.8, far >= 0.9" "$ssh cat big >/dev/null" "$af fs read --bytes --max-bytes 300000000 big >/dev/null"
  measure -n 3 -sh -speed "write 256 MiB" "near >= 0.8, far >= 0.9" "$ssh 'cat > out' < $WORK/home/big" "$af fs write --bytes out < $WORK/home/big >/dev/null"
  echo "round trips:"
  for op in "fs stat small" "fs read small" "fs ls many" "fs write --content x new" "fs edit new --old x --new y"; do
    printf '  %-28s' "$op"
    $af --trace $op 2>&1 >/dev/null | grep -v 'trace: connect' | grep -o 'trace: .* bytes' | sed 's/trace: //; s/ bytes//' | tr '\n' ';'
    echo
    [ "$op" != "fs edit new --old x --new y" ] || $af exec -n -- rm new
  done
done
