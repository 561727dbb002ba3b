#!/usr/bin/env bash
# E2B: requests per primitive and whole-command times against a Node script with
# the official SDK, on the stand-in with 0 and 25 ms added to each request. Run
# by bench.sh.
set -euo pipefail
n=${N:-5}
go build -o bin/standin ./pkg/backend/e2b/e2btest/standin
sdk=$PWD/.cache/npm/e2b-2.51.0
[ -d "$sdk/node_modules/e2b" ] || npm install --prefix "$sdk" --no-audit --no-fund --silent e2b@2.51.0

# requests prints how many requests a command makes, and of what kinds.
requests() {
  local label=$1 program=$2; shift 2
  "$program" --trace "$@" 2>&1 >/dev/null </dev/null | sed -n 's/.*trace: \(.*\) round-trips=.*/\1/p' | sort | uniq -c |
    awk -v l="$label" '{n+=$1; k=k sprintf(" %s %s×%d", $2, $3, $1)} END {printf "%-28s %2d requests:%s\n", l, n, k}'
}

for delay in 0ms 25ms; do
  echo "== $delay added to each request"
  mkfifo "$WORK/hold-$delay"
  bin/standin "" "$delay" < "$WORK/hold-$delay" > "$WORK/env-$delay" &
  exec 9> "$WORK/hold-$delay"
  until [ "$(wc -l < "$WORK/env-$delay")" -ge 4 ]; do sleep 0.1; done
  set -a; . "$WORK/env-$delay"; set +a
  export AFIELD_STATE_DIR=$WORK/state-$delay
  printf 'version: 1\nbackend: e2b\nconfig: {create: true, cwd: %s/ws}\n' "$E2B_ROOT" > "$WORK/e2b.yaml"
  a="afield --profile-file $WORK/e2b.yaml"
  $a fs write f --content 'one two' > /dev/null
  version() { $a fs stat f --json | sed 's/.*"version":"\([^"]*\)".*/\1/'; }
  requests stat $a fs stat f
  requests read $a fs read f
  requests list $a fs ls
  requests "create if absent" $a fs write "new" --if-absent --content x
  requests "guarded replace" $a fs write f --if-version "$(version)" --content 'one two'
  requests edit $a fs edit f --old two --new 2
  requests "exec (start and end)" $a exec -n -- true
  id=$($a exec -n -- sh -c 'echo $E2B_SANDBOX_ID')
  cat > "$WORK/read.mjs" <<JS
import { createRequire } from 'node:module'
const { Sandbox } = createRequire('$sdk/index.js')('e2b')
const s = await Sandbox.connect('$id')
process.stdout.write(await s.files.read('$E2B_ROOT/ws/f'))
process.exit(0)
JS
  measure -n "$n" "fs read, one small file" "<= 0.1" "node $WORK/read.mjs" "$a fs read f"
  exec 9>&-
  wait
done
