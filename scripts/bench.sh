#!/usr/bin/env bash
# Measures afield against its peers, in turn on the same work in one run, and
# prints ratios. Without an argument: the local world. `bench.sh NAME` runs
# scripts/bench-NAME.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-local}
mkdir -p bin
[ -x bin/afield ] || make build
go build -o bin/measure ./scripts/measure
export PATH="$PWD/bin:$PATH"
export AFIELD_CONFIG_DIR=/nonexistent-afield-config AFIELD_KEEP=off
work=$(mktemp -d "${TMPDIR:-/tmp}/afield-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
export WORK=$work AFIELD_STATE_DIR=$work/state
shift || true
exec_script=scripts/bench-$name.sh
[ -f "$exec_script" ] || { echo "bench: no $exec_script" >&2; exit 2; }
bash "$exec_script" "$@"
