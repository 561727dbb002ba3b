#!/usr/bin/env bash
# The rows of the performance budget for incremental reads. Run by bench.sh.
set -euo pipefail
n=${N:-31}
export AFIELD_SESSION=bench
cd "$WORK"
quiet="--set mount.valveReads=0 mount"

# A 2,000-line file and one of 20,000 lines, old enough for their stat to count.
seq 1 2000 | sed 's/$/ some words of source code/' > two.txt
seq 1 20000 | sed 's/$/ some words of source code, enough/' > large.txt
touch -d '1 hour ago' two.txt large.txt

afield mount read two.txt >/dev/null
measure -n "$n" "mount read, unchanged 2,000 lines" "<= 1.5" "afield fs view two.txt" "afield $quiet read two.txt"
measure -n 5 "peak memory of fs view (right side)" "" "true" "afield fs view two.txt"

# Sessions that hold 10 and 10,000 other files.
session() { # ID FILES
  local dir=$AFIELD_STATE_DIR/mount/v1/$1
  mkdir -p -m 700 "$dir"
  awk -v n="$2" 'BEGIN {
    print "{\"v\":1,\"seq\":0,\"at\":\"2026-01-01T00:00:00Z\",\"op\":\"base\",\"base\":{\"generation\":\"seeded\",\"seq\":0,\"used\":-1,\"window\":-1,\"shift\":-1,\"saved\":0,\"overhead\":0,\"counted\":true}}"
    for (i = 1; i <= n; i++)
      printf "{\"v\":1,\"seq\":%d,\"at\":\"2026-01-01T00:00:00Z\",\"op\":\"read\",\"file\":{\"identity\":\"w:/src/f%d.go\",\"world\":\"w\",\"key\":\"/src/f%d.go\",\"path\":\"src/f%d.go\",\"hash\":\"%064d\",\"size\":9000,\"total\":300,\"segments\":[{\"start\":1,\"end\":200,\"seq\":%d,\"position\":100,\"tokens\":2000,\"expired\":0}],\"kind\":\"new\",\"at\":\"2026-01-01T00:00:00Z\",\"saved\":10,\"overhead\":5}}\n", i, i, i, i, i, i
  }' > "$dir/journal.jsonl"
  afield mount read two.txt --session "$1" >/dev/null
}
session few 10
session many 10000
measure -n "$n" "mount read, 10,000 files against 10" "about 1" "afield $quiet read two.txt --session few" "afield $quiet read two.txt --session many"

# One changed line in 20,000: each run changes it first.
cat > change.sh <<'SH'
if [ -e odd ]; then rm odd; c=x; else : > odd; c=y; fi
printf %s "$c" | dd of=large.txt bs=1 seek=300000 conv=notrunc status=none
SH
afield mount read large.txt --offset 9000 --limit 1500 >/dev/null
measure -n "$n" -sh "remount, one line of 20,000" "<= 3.0" \
  ". ./change.sh; afield fs view large.txt --offset 9000 --limit 1500 >/dev/null" \
  ". ./change.sh; afield mount read large.txt --offset 9000 --limit 1500 >/dev/null"
measure -n 5 "peak memory of fs view (right side)" "" "true" "afield fs view large.txt --offset 9000 --limit 1500"

# Eight processes at once in one session.
cat > eight.sh <<'SH'
for i in 1 2 3 4 5 6 7 8; do
  (for j in 1 2 3 4 5 6 7 8 9 10; do afield "$@" two.txt >/dev/null; done) &
done
wait
SH
measure -n 5 -sh -speed "8 processes at once, reads a second" ">= 0.5" "sh eight.sh fs view" "sh eight.sh $quiet read"

# The page with 10,000 files: memory of the server, and the time until a change
# arrives at an open page.
afield mount serve --session many --json > serve.json 2>serve.err &
server=$!
stop() { kill "$server" "${curl:-$server}" 2>/dev/null || true; }
trap stop EXIT
until [ -s serve.json ]; do :; done
url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' serve.json)
curl -sN "${url}events" > stream.txt &
curl=$!
until [ "$(grep -o '"lastAnswer"' stream.txt | wc -l)" -ge 10001 ]; do :; done
started=$(date +%s%N)
afield mount read large.txt --session many --limit 5 >/dev/null
until grep -q '"path":"large.txt"' stream.txt; do :; done
arrived=$(date +%s%N)
printf '%-34s %d ms after the read began (want < 1000)\n' "page, 10,000 files: a change" $(( (arrived - started) / 1000000 ))
printf '%-34s %d MiB (want < 150)\n' "page, 10,000 files: peak memory" $(( $(sed -n 's/VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server/status") / 1024 ))
