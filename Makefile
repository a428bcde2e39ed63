# What a newcomer and a developer run. It needs Go, make and git; a target that
# needs more says so, or installs it where it may (tools/need.sh).
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory

# Every module of the repository. The library's users get the first one only.
MODULES := . bench tools browsertest

# make test RACE=1 turns the race detector on; it needs a C compiler.
RACE      ?=
TESTFLAGS ?=
# The packages of each module to test.
PACKAGES  ?= ./...
# How long to fuzz each target: inputs (200000x) or time (5m). Inputs are the
# default because up to Go 1.26 the end of a time can look like a finding
# (go.dev/issue/75804).
FUZZTIME ?= 200000x
# How many tasks are pending in make bench-scale.
PENDING ?= 10000000
# How often make torture starts each test anew, every time with another seed. Ten
# rounds kill 3,000 processes of the durable queue.
ROUNDS ?= 10
# And simulates the durable queue so many times, with a seed each, and kills so
# many processes that share slots.
SEEDS ?= 10000

# One of the peers is SQLite in C. What else the peers need, each suite sees to.
bench-needs = gcc:gcc gcc:libc6-dev

lint = go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint
# Runs go test in some modules, and says at the end how many tests ran and which failed.
test = go tool -modfile=$(CURDIR)/tools/go.mod gotestsum --format pkgname --format-icons text \
	--format-hide-empty-pkg --raw-command -- tools/testjson.sh
# Runs a command in every module; the first failure ends it.
each = for module in $(MODULES); do (cd $$module && $(1)) || exit 1; done

.PHONY: help
help: ## Say what there is to run.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Start the server of durable tasks on ./stint-data; bin/stint submit sends it commands.
	bin/stint serve

.PHONY: example
example: build ## Compress every .go file of the Go source tree into out/, two at a time.
	@mkdir -p out
	find "$$(go env GOROOT)/src" -name '*.go' -not -path '*/testdata/*' | sort | \
		bin/stint run -j2 --joblog out/joblog --resume --stdout 'out/{#}.go.gz' gzip -c
	@echo "$$(find out -name '*.gz' | wc -l) files in out/; run it again and nothing is left to do"

.PHONY: build
build: ## Build the program as bin/stint.
	@test -e bin/stint || echo 'building bin/stint: the first time compiles 500 packages, for about a minute on two cores'
	go build -v -o bin/stint ./cmd/stint

.PHONY: test
test: ## Run every test of every module; RACE=1 with the race detector. make lint vets.
	@tools/need.sh gzip:gzip $(if $(RACE),gcc:gcc gcc:libc6-dev)
	@# The S3 server of some tests: building it takes minutes once, which no test should wait for.
	@cd internal/s3gateway/program && go tool -n versitygw >/dev/null
	$(test) $(MODULES) -- -vet=off -timeout 20m $(if $(RACE),-race) $(TESTFLAGS) $(PACKAGES)

.PHONY: race
race: ## The same as make test RACE=1.
	@$(MAKE) test RACE=1

.PHONY: torture
torture: export STINT_SEED := random
torture: ## Run the random and the crash tests ROUNDS times with new seeds, then fuzz every target.
	@tools/need.sh gzip:gzip gcc:gcc gcc:libc6-dev
	$(test) . -- -timeout 4h -race -count $(ROUNDS) -run 'Model|Random|Stress|Kill|Crash|Disturbed|StoppedLeader' ./...
	STINT_SEEDS=$(SEEDS) $(test) . -- -timeout 4h -run C6_Simulation ./queue/internal/simulation
	STINT_SEEDS=$(SEEDS) $(test) . -- -timeout 4h -run 'B8|B13' ./shm/...
	@$(MAKE) fuzz

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME.
	$(call each,$(CURDIR)/tools/fuzz.sh $(FUZZTIME))

.PHONY: lint
lint: ## Vet, lint and check the formatting of every module.
	@# Among the linters is govet, with the checks of go vet.
	$(call each,$(lint) run ./...)

.PHONY: fmt
fmt: ## Format every module as the linters want it.
	$(call each,$(lint) fmt ./...)

.PHONY: bench
bench: ## Measure against the peers and write bench/RESULTS.md (minutes).
	@tools/need.sh $(bench-needs)
	cd bench && go run .

.PHONY: bench-scale
bench-scale: ## Measure ten million pending tasks, or PENDING (minutes, 2 GiB of memory, 10 of disk).
	cd bench && go run . -suite scale -pending $(PENDING)

.PHONY: bench-once
bench-once: ## Run every benchmark once, to see that it works.
	@tools/need.sh $(bench-needs)
	go test -vet=off -run '^$$' -bench . -skip 'WaitBeside/(300000|1000000)' -benchtime 1x ./...
	@$(MAKE) test MODULES=bench

.PHONY: picture
picture: build ## Record docs/stint-run.svg, the picture of the README, anew.
	@tools/need.sh gzip:gzip
	go -C tools run ./picture -stint ../bin/stint -goroot "$$(go env GOROOT)" -o ../docs/stint-run.svg

.PHONY: clean
clean: ## Remove what the other targets built.
	rm -rf bin out
