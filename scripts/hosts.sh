# Sourced by the benchmarks over ssh: . scripts/hosts.sh DELAY
#
# Starts a server of its own, which takes root, and makes two hosts of it, in an
# OpenSSH configuration ($WORK/config) and as profiles ($WORK/HOST.yaml): near on
# loopback, and far through a proxy that adds DELAY each way. Both have the home
# $WORK/home. $server and $proxy are their processes, and end with the script.
mkdir -p "$WORK/home" /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$WORK/host"
ssh-keygen -q -t ed25519 -N '' -f "$WORK/id"
port=$((20000 + RANDOM % 20000))
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
bin/delay 127.0.0.1:$((port + 1)) 127.0.0.1:$port "$1" &
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
