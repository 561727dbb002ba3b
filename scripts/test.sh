#!/usr/bin/env bash
# Installs what the tests need and runs all of them: packages with the race
# detector, end-to-end scripts with a plain binary.
set -euo pipefail
cd "$(dirname "$0")/.."
# Real peers from Debian's packages: an SSH server, a browser, and the shells that a far
# world may have.
wanted=(openssh-server chromium busybox dash mksh zsh fish csh tcsh)
if command -v apt-get >/dev/null && ! dpkg -s "${wanted[@]}" >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
  $sudo apt-get update -q
  $sudo apt-get install -y -q "${wanted[@]}"
fi
export AFIELD_TEST_REQUIRE="${AFIELD_TEST_REQUIRE:-all}"
test -z "$(gofmt -l $(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
go vet ./...
go test -race ./...
# The histories of the mount ledger, all of them: ten times as fast without the
# race detector.
go test -run TestNoMarkerClaimsWhatTheCallerLacks ./pkg/mount
