#!/usr/bin/env bash
# E2B: requests of each primitive, whole commands against the official SDK and
# command line, and bulk against curl, on the stand-in with 0 and 25 ms added to
# each request. Run by bench.sh.
set -euo pipefail
n=${N:-5}
go build -o bin/standin ./pkg/backend/e2b/e2btest/standin
sdk=$PWD/.cache/npm/e2b-2.51.0 cli=$PWD/.cache/npm/e2b-cli-2.19.0
[ -d "$sdk/node_modules/e2b" ] || npm install --prefix "$sdk" --no-audit --no-fund --silent e2b@2.51.0
[ -d "$cli/node_modules/@e2b/cli" ] || npm install --prefix "$cli" --no-audit --no-fund --silent @e2b/cli@2.19.0

# requests prints how many requests a command makes, as the stand-in counts
# them. The first question forgets what was before. Which of them waited for one
# another shows where each takes a while: the figures in brackets are the most
# that may.
requests() {
  local label=$1 said; shift
  echo >&"${standin[1]}"; read -r said <&"${standin[0]}"
  "$@" > /dev/null < /dev/null
  echo >&"${standin[1]}"; read -r said <&"${standin[0]}"
  printf '%-34s %s\n' "$label" "$said"
}

for delay in 0ms 25ms; do
  echo "== $delay added to each request"
  coproc standin { exec bin/standin "" "$delay"; }
  for _ in 1 2 3 4; do read -r line <&"${standin[0]}"; export "${line?}"; done
  export AFIELD_STATE_DIR=$WORK/state-$delay
  printf 'version: 1\nbackend: e2b\nconfig: {create: true, cwd: %s/ws}\n' "$E2B_ROOT" > "$WORK/e2b.yaml"
  a="afield --profile-file $WORK/e2b.yaml"
  $a fs write f --content 'one two' > /dev/null
  $a exec -n -- sh -c 'mkdir links; cd links; touch 1 2 3; ln -s 1 a; ln -s 2 b; ln -s .. c'
  version() { $a fs stat f --json | sed 's/.*"version":"\([^"]*\)".*/\1/'; }
  requests "stat (1)" $a fs stat f
  requests "read (2)" $a fs read f
  requests "list (2)" $a fs ls
  requests "list with links (2)" $a fs ls links
  requests "create if absent (3)" $a fs write new --if-absent --content x
  v=$(version)
  requests "guarded replace (3)" $a fs write f --if-version "$v" --content 'one two'
  requests "edit (4)" $a fs edit f --old two --new 2
  requests "exec (spawn 1, proof of the end 1)" $a exec -n -- true
  requests "the same with --env (1 more)" $a exec -n --env A=b -- true
  requests "term (spawn 1, its end 1)" script -qec "$a term -- true" /dev/null
  id=$($a exec -n -- sh -c 'echo $E2B_SANDBOX_ID')
  cat > "$WORK/read.mjs" <<JS
import { createRequire } from 'node:module'
const { Sandbox } = createRequire('$sdk/index.js')('e2b')
const s = await Sandbox.connect('$id')
process.stdout.write(await s.files.read('$E2B_ROOT/ws/f'))
process.exit(0)
JS
  measure -n "$n" -speed "fs read against the SDK" ">= 10" "node $WORK/read.mjs" "$a fs read f"
  measure -n "$n" -speed "fs read against the command line" ">= 10" "$cli/node_modules/.bin/e2b sandbox exec $id cat $E2B_ROOT/ws/f" "$a fs read f"
  if [ "$delay" = 0ms ]; then
    token=$(sed 's/.*"token": *"\([^"]*\)".*/\1/' "$AFIELD_STATE_DIR"/e2b/*.json)
    head -c 256M > "$E2B_ROOT/ws/big" < <(yes 'a line of text that is read and written')
    curl="curl -sf -H X-Access-Token:$token -H E2b-Sandbox-Id:$id -H E2b-Sandbox-Port:49983"
    url="$E2B_SANDBOX_URL/files?path=$E2B_ROOT/ws"
    measure -n 3 -sh -speed "256 MiB read | cat, 64 MiB" ">= 0.7" "$curl '$url/big' | cat >/dev/null" "$a fs read big | cat >/dev/null"
    measure -n 3 -sh -speed "256 MiB written, 64 MiB" ">= 0.7" \
      "$curl -X POST -H Content-Type:application/octet-stream -T $E2B_ROOT/ws/big '$url/copy' >/dev/null" \
      "$a fs write copy < $E2B_ROOT/ws/big >/dev/null"
  fi
  exec {standin[1]}>&-
  wait
done
