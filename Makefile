# `make` prints what there is to make.
.DEFAULT_GOAL := help
.PHONY: help build test race lint vuln mutants check demo bench train fuzz

GO       ?= go
FUZZTIME ?= 30s
JOBS     ?= 2

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/bot, static and without cgo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/bot ./cmd/bot

test: ## run all tests; uses PostgreSQL from COUNTERSIGN_TEST_POSTGRES, or starts an installed one
	$(GO) test ./...

race: ## run all tests under the race detector
	CGO_ENABLED=1 $(GO) test -race ./...

lint: ## check format, vet, and the linter with the import rules
	@files=$$(git ls-files -z '*.go' | xargs -0 -r gofmt -l); test -z "$$files" || { echo "gofmt would change:"; echo "$$files"; exit 1; }
	$(GO) vet ./...
	$(GO) tool -modfile=tools/golangci-lint/go.mod golangci-lint run

vuln: ## look for known faults in what we call, against a dated list of accepted ones
	$(GO) run ./internal/vulncheck

mutants: ## put each deliberate mistake in and demand that its test fails (RUN=regexp for some)
	$(GO) run ./internal/mutants -j $(JOBS) -run '$(RUN)'

check: ## what must hold before a change lands, with its own PostgreSQL and Redis, as CI does
	scripts/test

demo: ## play a whole conversation over the real HTTP surface with a simulated phone
	$(GO) run ./cmd/bot demo --script

bench: ## make the reader's figures on its own test part; the other commands take paths, see README.md
	$(GO) run ./bench/reader

train: ## train the built-in reader from the corpus; the same bytes every time
	$(GO) run ./cmd/bot train

fuzz: ## fuzz every invariant that has a fuzz test, FUZZTIME (30s) each
	@for file in $$(git ls-files '*_test.go' | xargs grep -l '^func Fuzz'); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$file); do \
			echo "== $$target in $$(dirname $$file)"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file) || exit 1; \
		done; \
	done
