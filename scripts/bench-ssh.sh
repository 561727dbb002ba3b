#!/usr/bin/env bash
# The ssh rows of the performance budget, against OpenSSH's own client with the
# same key and no multiplexing: on loopback, and through a proxy that adds 50 ms
# each way. Run by bench.sh, as root, since it starts a server of its own.
#
#	scripts/bench.sh ssh [small|bulk|output|trips]...
#
# N is the number of pairs of small runs, MIB the size of bulk ones, HOSTS who is
# measured (near, far).
set -euo pipefail
n=${N:-9}
. scripts/hosts.sh 50ms

echo hello > "$WORK/home/small"
mkdir "$WORK/home/many"
(cd "$WORK/home/many" && seq 2000 | xargs touch)

# ours and peer reach the host that $host names.
ours() { echo "afield --profile-file $WORK/$host.yaml $*"; }
peer() { echo "ssh -F $WORK/config $host $*"; }

small() {
  for host in ${HOSTS:-near far}; do
    measure -n "$n" -sh "$host: fs read, small" "near <= 1.1, far <= peer + 200 ms" "$(peer cat "$WORK/home/small") >/dev/null" "$(ours fs read small) >/dev/null"
    measure -n "$n" -sh "$host: exec true" "<= peer + 20 ms" "$(peer true)" "$(ours exec -n -- true)"
    measure -n 3 -sh "$host: list of 2000" "far <= 0.2" "echo ls -l $WORK/home/many | sftp -b - -F $WORK/config $host >/dev/null" "$(ours fs ls many) >/dev/null"
  done
}

# The login of the peer begins elsewhere, so its paths are absolute.
# Text, because fs read proves that it is; it does not compress.
bulk() {
  mib=${MIB:-256}
  head -c $((mib * 768 * 1024)) /dev/urandom | base64 -w 0 > "$WORK/home/big"
  for host in ${HOSTS:-near far}; do
    measure -n 3 -sh -speed "$host: read $mib MiB" "near >= 0.8, far >= 0.9" "$(peer cat "$WORK/home/big") >/dev/null" "$(ours fs read big) >/dev/null"
    measure -n 3 -sh -speed "$host: write $mib MiB" "near >= 0.8, far >= 0.9" "$(peer "'cat > $WORK/home/out'") < $WORK/home/big" "$(ours fs write out) < $WORK/home/big >/dev/null"
  done
}

output() {
  host=near
  measure -n 1 -sh -speed "$host: 1 GiB of output" "peak <= 64 MiB" "$(peer head -c 1G /dev/zero) >/dev/null" "$(ours exec -n -- head -c 1G /dev/zero) >/dev/null"
}

# After the login, opening the channel included.
trips() {
  host=near
  for op in "fs stat small" "fs read small" "fs ls many" "fs write --if-absent --content x new" \
    "fs write --if-version VERSION --content y new" "fs edit new --old y --new z" "exec -n -- true" "which sh"; do
    version=$(sh -c "$(ours fs stat --json new) 2>/dev/null" | sed -n 's/.*"version":"\([^"]*\)".*/\1/p') || true
    printf '%-46s' "$op"
    sh -c "$(ours --trace "${op/VERSION/$version}") 2>&1 >/dev/null" | awk -F '[ =]' '
      / trace: / && !/ connect / { for (i = 1; i < NF; i++) if ($i == "round-trips") { n += $(i + 1); list = list " " $3 } }
      END { print n " round trips:" list }'
  done
}

sh -c "ssh -F $WORK/config far true; $(host=near; ours exec -n -- true); $(host=far; ours exec -n -- true)"
for part in ${*:-trips small output bulk}; do $part; done
