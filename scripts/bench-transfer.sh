#!/usr/bin/env bash
# The figures of moving trees and searching: against rsync and sftp over the same
# server, on loopback and at 20 ms round trip, and against rg and find. Run by
# bench.sh, as root, since it starts a server of its own.
set -euo pipefail
n=${N:-3} files=${FILES:-10000} many=${MANY:-100000} big=${BIG:-1G}
. scripts/hosts.sh 10ms
ssh -F "$WORK/config" near true; ssh -F "$WORK/config" far true

# grow DIR COUNT: small files, 100 a directory.
grow() {
  mkdir -p "$1"
  (cd "$1" && seq 0 $(($2 / 100 - 1)) | xargs mkdir -p && seq 0 $(($2 - 1)) | awk '{ d = int($1 / 100); f = d "/f" $1; for (i = 0; i < 1 + $1 % 40; i++) print "line " i " of " $1 > f; close(f) }')
}
grow "$WORK/src" "$files"
h=$WORK/home
for host in near far; do
  ssh="ssh -F $WORK/config" af="afield -q --profile-file $WORK/$host.yaml"
  echo "== $host"
  measure -n "$n" -sh "push $files files" "<= 1.0" "rm -rf $h/r; rsync -a -e '$ssh' $WORK/src/ $host:$h/r/" "rm -rf $h/a; $af fs push $WORK/src $h/a"
  measure -n "$n" -sh "pull $files files" "<= 1.0" "rm -rf $WORK/r; rsync -a -e '$ssh' $host:$h/r/ $WORK/r/" "rm -rf $WORK/a; $af fs pull $h/a $WORK/a"
  measure -n "$n" -sh -speed "push, unchanged" ">= 0.8" "rsync -a -e '$ssh' $WORK/src/ $host:$h/r/" "$af fs push $WORK/src $h/a"
  [ $host = far ] && [ -z "${SLOW:-}" ] || measure -n 1 -sh -speed "push against sftp put -r" ">= 10" "rm -rf $h/s; mkdir $h/s; echo put -r $WORK/src $h/s/ | sftp -q -b - -F $WORK/config $host >/dev/null" "rm -rf $h/a; $af fs push $WORK/src $h/a"
done
af="afield -q --profile-file $WORK/near.yaml" ssh="ssh -F $WORK/config"
mkdir "$WORK/big" && head -c "$big" /dev/urandom > "$WORK/big/f"
measure -n "$n" -sh "push $big" "<= 1.1" "rm -rf $h/r; rsync -a -e '$ssh' $WORK/big/ near:$h/r/" "rm -rf $h/a; $af fs push $WORK/big $h/a"
measure -n "$n" -sh "pull $big" "<= 1.1" "rm -rf $WORK/r; rsync -a -e '$ssh' near:$h/r/ $WORK/r/" "rm -rf $WORK/a; $af fs pull $h/a $WORK/a"
rm -rf "$WORK/big" "$h/r" "$h/a" "$WORK/r" "$WORK/a"

grow "$WORK/many" "$many"
measure -n 1 -sh "push $many files, peak memory" "<= 64 MiB" true "$af fs push $WORK/many m"
cd "$WORK/many"
measure -n "$n" -sh "grep by rg" "<= 1.2" "rg --no-config --json 'line 39 of .*7' >/dev/null" "afield fs grep 'line 39 of .*7' --json --max-matches 0 >/dev/null"
own="PATH=/nonexistent $(command -v afield)"
measure -n "$n" -sh "glob by our own walk" "<= 2.0" "find . -name 'f*7' -type f >/dev/null" "$own fs glob 'f*7' -0 --max-results 0 >/dev/null"
