# afield: build, try, test, measure.
SHELL := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/afield-dev/afield/cmd.version=$(VERSION)

.PHONY: build
build: ## build bin/afield
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/afield .

.PHONY: install
install: ## install afield into GOBIN
	CGO_ENABLED=0 go install -trimpath -ldflags '$(LDFLAGS)' .

.PHONY: try
try: build ## run the main job on the local world, step by step
	scripts/try.sh

.PHONY: test
test: ## install what the tests need and run all of them
	scripts/test.sh

.PHONY: test-live
test-live: ## run the suites on the real services whose keys are set
	AFIELD_TEST_LIVE=1 go test -v -count=1 -timeout 60m -run '^TestLive' ./pkg/backend/...

.PHONY: test-examples
test-examples: ## run the whole suites against the example plugins
	AFIELD_TEST_EXAMPLES=1 go test -v -count=1 -timeout 30m -run TestExamplesConform ./cmd

.PHONY: fuzz
fuzz: ## fuzz what reads a provider's bytes and a plugin's files, a minute each
	for t in provider:FuzzReadFrame provider:FuzzConn plugin:FuzzManifest plugin:FuzzUnpack plugin:FuzzSource; do \
		go test -run '^$$' -fuzz "^$${t#*:}$$" -fuzztime 60s ./pkg/$${t%%:*} || exit 1; done

.PHONY: bench
bench: build ## measure against the peers, printed as ratios
	scripts/bench.sh

.PHONY: docs
docs: ## regenerate man/ and completions/
	go run . docs --out .

.PHONY: lint
lint: ## gofmt and go vet
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
