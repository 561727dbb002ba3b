#!/usr/bin/env bash
# The figures of the box world against the stand-in on loopback. Run by bench.sh.
set -euo pipefail
n=${N:-9}
box() { afield --profile-file "$WORK/box.yaml" "$@"; }

go build -o bin/boxd ./pkg/backend/box/boxtest/boxd
export UPSTASH_BOX_API_KEY=box_bench UPSTASH_DISABLE_TELEMETRY=1
mkfifo "$WORK/hold"
boxd < "$WORK/hold" > "$WORK/url" & server=$!
exec 9> "$WORK/hold"
trap 'exec 9>&-; wait $server 2>/dev/null || true' EXIT
until [ -s "$WORK/url" ]; do sleep 0.05; done
export UPSTASH_BOX_BASE_URL; UPSTASH_BOX_BASE_URL=$(cat "$WORK/url")
printf 'version: 1\nbackend: box\nconfig: {create: true}\n' > "$WORK/box.yaml"

# Requests of each primitive: upstash-box.md 11 allows what stands in brackets,
# an exec session counts two. Both ends are asked: our trace, and the server.
box exec -n -- sh -c 'seq 1 1000 > small; head -c 9M /dev/zero | tr "\0" x > large; mkdir many; cd many; seq 1 2000 | xargs touch'
count() {
  local label=$1; shift
  curl -sf -X DELETE "$UPSTASH_BOX_BASE_URL/control/journal"
  "$@" > /dev/null
  local all; all=$(curl -sf "$UPSTASH_BOX_BASE_URL/control/journal")
  # A session costs its upgrade, the exchange start and started, and, with
  # input, the exchange of its end and the answer.
  local requests started fed
  requests=$({ grep -o '"kind":"request"' <<< "$all" || true; } | wc -l)
  started=$({ grep -o 'type\\":\\"started' <<< "$all" || true; } | wc -l)
  fed=$({ grep -o 'type\\":\\"stdin\\"' <<< "$all" || true; } | sort -u | wc -l)
  echo "round trips, $label: $((requests + started + fed))"
}
count "resolve (1)" box fs resolve small
count "stat (1)" box fs stat small
count "lstat (1)" box fs lstat small
count "read, small (1)" box fs read small
count "read, 9 MiB in ranges of 4 (5)" box fs read large
count "list of 2000 (1)" box fs ls many
count "write (upgrade and 2)" box fs write new --content x
version=$(box fs stat --json new | sed "s/.*\"version\":\"\([^\"]*\)\".*/\1/")
count "guarded write (upgrade and 2)" box fs write new --content y --if-version "$version"
count "edit (upgrade and 3)" box fs edit small --old 500 --new five
count "which (1)" box which ls
count "exec (upgrade and 1, and 1 for the proof that nothing is left)" box exec -n -- true

# A whole command against the same with the official SDK.
modules=$(go run ./pkg/backend/box/boxtest/boxd -modules)
cat > "$modules/true.mjs" <<'JS'
import { Box } from "@upstash/box";
const box = await Box.get(process.argv[2]);
process.exit((await box.exec.command("true")).exitCode);
JS
id=$(curl -sf -H "X-Box-Api-Key: $UPSTASH_BOX_API_KEY" "$UPSTASH_BOX_BASE_URL/v2/box" | sed 's/.*"id":"\([^"]*\)".*/\1/')
measure -n "$n" -speed "exec true against the SDK" ">= 10" "node $modules/true.mjs $id" "afield --profile-file $WORK/box.yaml exec -n -- true"

# Output of a session against a bare relay that decodes the same frames.
printf '{"type":"start","argv":["head","-c","256M","/dev/zero"],"cwd":"/"}' > "$WORK/start"
measure -n 5 -sh -speed "256 MiB of session output | cat" ">= 0.5" \
  "boxd -relay $id < $WORK/start | cat >/dev/null" \
  "afield --profile-file $WORK/box.yaml exec -n -- head -c 256M /dev/zero | cat >/dev/null"
measure -n 1 -sh "a reader that stops: peak memory" "64 MiB" "true" \
  "afield --profile-file $WORK/box.yaml exec -n -- head -c 64M /dev/zero | { head -c 1M >/dev/null; sleep 3; }"
