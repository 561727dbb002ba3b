#!/usr/bin/env bash
# Runs the main job on this machine, on real files of the checkout, without any
# configuration: each step as a user types it, with its output and exit status.
# A step that ends with another status than the one shown here fails the run.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
PATH=$root/bin:$PATH
if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi

# A place for what is written; the sources are only read.
work=$root/.cache/try
rm -rf "$work" && mkdir -p "$work"
cp main.go "$work/main.go"

say() { printf '\n%s# %s%s\n' "$dim" "$*" "$plain"; }

# step STATUS COMMAND: show it, run it, show and check its status.
step() {
	local want=$1 command=$2 got=0
	printf '%s$ %s%s\n' "$bold" "$command" "$plain"
	bash -c "$command" 2>&1 || got=$?
	[ -z "${newline:-}" ] || echo
	printf '%sexit status %d%s\n\n' "$dim" "$got" "$plain"
	[ "$got" = "$want" ] || { echo "expected exit status $want" >&2; exit 1; }
}

say "A window of a source file: numbered lines, the total, where to go on."
newline=1 step 0 'afield fs view cmd/exit.go --offset 1 --limit 12'

say "What is there, for a person and for a script."
step 0 'afield fs stat go.mod'
step 3 'afield fs stat go.mod nosuch --json'
step 0 'afield fs ls pkg'

cd "$work"
say "Create a file only where nothing is. The second try is refused: status 4."
step 0 'echo "first" | afield fs write --if-absent notes.txt'
step 4 'echo "second" | afield fs write --if-absent notes.txt'
step 4 'echo "second" | afield fs write --if-absent notes.txt --json'
step 0 'afield fs read notes.txt'

say "Edit literal text, and see the change."
step 0 "afield fs edit main.go --old 'os.Exit(' --new 'os.Exit(0 * ' --diff"
step 6 "afield fs edit main.go --old 'no such text' --new x"

say "A version is a guard: of two writers who saw the same file, one wins."
version=$(afield fs stat notes.txt --json | sed 's/.*"version":"\([^"]*\)".*/\1/')
step 0 "afield fs write notes.txt --if-version $version --content 'mine' --json"
step 4 "afield fs write notes.txt --if-version $version --content 'theirs'"

say "Several edits of one file, all or nothing."
step 0 "echo '[{\"old\": \"package main\", \"new\": \"package demo\"}, {\"old\": \"func main\", \"new\": \"func Run\"}]' | afield fs edit main.go --edits - --json"

say "Read before you change: an owner may change only what it has seen."
step 4 "afield fs edit main.go --policy observed --owner ann --old 'package demo' --new 'package main'"
newline=1 step 0 'afield fs view main.go --policy observed --owner ann --limit 3'
step 0 "afield fs edit main.go --policy observed --owner ann --old 'package demo' --new 'package main'"

cd "$root"
say "Run a program: its own streams, its own status, no shell in between."
step 0 'afield exec -- go version'
step 7 "afield exec -- sh -c 'echo to stdout; echo to stderr >&2; exit 7'"
step 7 "afield exec --json -- sh -c 'echo to stdout; echo to stderr >&2; exit 7'"
step 127 'afield exec -- nosuch-program'
step 124 'afield exec --timeout 500ms -- sleep 60'
step 0 'afield which git'

say "Paths that do not exist, and a word that is no command."
step 3 'afield fs read nosuch.go'
step 2 'afield fs nosuch'

say "Where the profile comes from, and whether all is well here."
step 0 'afield profile list'
step 0 'afield doctor'
echo "All steps ended as expected. What was written is in .cache/try."
