#!/usr/bin/env bash
# The local rows of the performance budget. Run by bench.sh.
set -eu
n=${N:-9}
m() { measure "$@"; }

echo "binary: $(( $(stat -c %s bin/afield) / 1024 )) KiB (want at most 20480)"

# A bare Go program that prints a line.
mkdir -p "$WORK/bare"
cat > "$WORK/bare/main.go" <<'GO'
package main

import "os"

func main() { os.Stdout.WriteString("bare\n") }
GO
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$WORK/bare/bare" "$WORK/bare/main.go"
m -n 101 "start-up (version)" "<= 2.0" "$WORK/bare/bare" "afield version"

ascii=$WORK/ascii.txt multi=$WORK/multi.txt
yes 'The quick brown fox jumps over the lazy dog and looks back once more.' | head -c 1G > "$ascii"
yes '天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏' | head -c 1073741785 | iconv -f utf-8 -t utf-8 -c > "$multi"
m -n "$n" -sh -speed "fs read 1 GiB ASCII | cat" ">= 1.0" "cat $ascii | cat >/dev/null" "afield fs read $ascii | cat >/dev/null"
m -n "$n" -sh -speed "fs read 1 GiB multi-byte | cat" ">= 0.45" "cat $multi | cat >/dev/null" "afield fs read $multi | cat >/dev/null"
m -n 3 -sh "fs view, first window of 1 GiB" "32 MiB" "wc -l <$ascii >/dev/null" "afield fs view $ascii >/dev/null"

head -c 256M "$ascii" > "$WORK/quarter"
m -n "$n" -sh -speed "fs write 256 MiB from stdin" ">= 0.8" \
  "cat $WORK/quarter | dd of=$WORK/dd.out bs=1M iflag=fullblock conv=fsync status=none" \
  "cat $WORK/quarter | afield fs write $WORK/af.out >/dev/null"
rm -f "$WORK"/{dd,af}.out "$multi"

head -c 1M "$ascii" > "$WORK/mib"
printf 'needle\n' >> "$WORK/mib"
# Each edit turns the word round and is guarded by the version that the last one gave.
cat > "$WORK/edit.sh" <<'SH'
read -r v old new < "$WORK/guard"
out=$(afield fs edit --json "$WORK/mib" --old "$old" --new "$new" --if-version "$v") || exit
out=${out#*\"version\":\"}
echo "${out%%\"*} $new $old" > "$WORK/guard"
SH
out=$(afield fs stat --json "$WORK/mib"); out=${out#*\"version\":\"}
echo "${out%%\"*} needle thread" > "$WORK/guard"
m -n "$n" -sh "guarded edit of 1 MiB" "<= 3.0" \
  "dd if=$WORK/mib of=$WORK/mib.copy bs=1M conv=fsync status=none" ". $WORK/edit.sh"

m -n 101 "exec true" "<= 2x start-up more" "env true" "afield exec -n -- true"
m -n "$n" -sh -speed "exec, 1 GiB of output | cat" ">= 0.5" "head -c 1G /dev/zero | cat >/dev/null" "afield exec -n -- head -c 1G /dev/zero | cat >/dev/null"
m -n 3 -sh "exec --json, 1 GiB collected" "32 MiB" "head -c 1G /dev/zero | cat >/dev/null" "afield exec -n --json -- head -c 1G /dev/zero >/dev/null"
