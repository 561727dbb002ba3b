#!/usr/bin/env bash
# Installs what the tests need and runs all of them, with nothing left out:
# packages with the race detector, end-to-end scripts and process races with a
# plain binary.
set -euo pipefail
cd "$(dirname "$0")/.."
export AFIELD_TEST_REQUIRE="${AFIELD_TEST_REQUIRE:-all}"
export GORACE="${GORACE:-atexit_sleep_ms=0}"
export CGO_ENABLED=1 # the race detector needs a C compiler

# need PROGRAM PACKAGE: remember the package of a program that is not there.
missing=()
need() { PATH=$PATH:/usr/sbin command -v "$1" >/dev/null || missing+=("$2"); }
need cc gcc
need tmux tmux
need node nodejs
need npm npm
need python3 python3-minimal
need setpriv util-linux
need ps procps
need vim.tiny vim-tiny
need less less
need rg ripgrep
need rsync rsync
[ -x /usr/sbin/sshd ] || missing+=(openssh-server)
need chromium chromium
# The shells that a far world may have.
for shell in busybox dash mksh zsh fish csh tcsh; do need $shell $shell; done

if [ ${#missing[@]} -gt 0 ]; then
	if [ "$(id -u)" = 0 ]; then sudo=''; else sudo='sudo -n'; fi
	echo "installing ${missing[*]}" >&2
	if ! { $sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/tmp/afield-apt.log 2>&1; then
		tail -n 5 /tmp/afield-apt.log >&2
		echo "The tests need: ${missing[*]}. Install them (this script tries apt-get, as root or by sudo), then run it again." >&2
		exit 1
	fi
fi

unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { echo "not gofmt-ed: $unformatted" >&2; exit 1; }
go vet ./...
# The suites on far worlds start thousands of processes on real servers and wait
# for them: they run plainly, one package at a time, beside everything else,
# which runs with the race detector.
far='/pkg/backend/(box|e2b|ssh)$'
go test -p 1 -timeout 30m "$@" $(go list ./... | grep -E "$far") &
beside=$!
status=0
go test -race -timeout 30m "$@" $(go list ./... | grep -vE "$far") || status=$?
wait "$beside" || status=$?
[ "$status" = 0 ] || exit "$status"
# The histories of the mount ledger, all of them: ten times as fast without the
# race detector.
go test -run TestNoMarkerClaimsWhatTheCallerLacks ./pkg/mount
