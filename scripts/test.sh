#!/usr/bin/env bash
# Installs what the tests need and runs all of them: packages with the race
# detector, end-to-end scripts with a plain binary.
set -euo pipefail
cd "$(dirname "$0")/.."
export AFIELD_TEST_REQUIRE="${AFIELD_TEST_REQUIRE:-all}"
test -z "$(gofmt -l $(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
go vet ./...
go test -race ./...
