# SPDX-License-Identifier: Apache-2.0
#
# Bare `make` prints the targets. Needs Go, make and a shell; race and
# bench-peers install what else they need from Debian, or say why they skip.

GO          ?= go
NP          ?= 4
MATRIX      ?= examples/cg/testdata/bcsstk16.mtx.gz
FUZZTIME    ?= 60s
TESTTIMEOUT ?= 28m
ARGS        ?=
SOAKTIMEOUT ?= 60m
# Under the race detector the tests of package mpi alone take nine minutes on two busy cores.
RACETIMEOUT ?= 25m
COMMA       := ,
# Anything but empty prints each test's name: make test V=1.
V           ?=

export CGO_ENABLED := 0

# All commands build with -trimpath, so that each package is compiled once for all of them.
# Many tests wait: one package more is tested at a time than there are processors.
TEST := $(GO) test -trimpath -p $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# The tests take four minutes on two cores, and more on a slow machine. The ceiling is for
# tests that hang: it says which.
CEILING ?= .ci/ceiling 1800
VERBOSE := $(if $(V),-v,)

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## gompirun, gompictl, gompibench, gompiplot and the examples into bin/
	@mkdir -p bin
	$(GO) build -trimpath -o bin/ ./cmd/... ./examples/...

.PHONY: run
run: build ## solve a real linear system with NP ranks (4): NP=2 MATRIX=file.mtx
	bin/gompirun -np $(NP) bin/cg $(MATRIX)

.PHONY: test
test: build ## go vet and every test: four minutes on two cores
	$(GO) vet -trimpath ./...
	$(CEILING) $(TEST) -timeout $(TESTTIMEOUT) $(VERBOSE) ./...

.PHONY: race
race: ## the concurrent packages under the race detector (needs a C compiler)
	.ci/race -timeout $(RACETIMEOUT) $(VERBOSE) ./mpi/... ./mpitest/... ./internal/engine/... ./internal/engine/match/... \
		./internal/host/wait/... ./internal/control/protocol/... ./internal/control/head ./internal/control/agent ./internal/control/server ./internal/core \
		./internal/engine/shmcoll ./internal/engine/progress ./internal/engine/shmem ./internal/launch/... ./internal/control/callreg/... ./transport/... ./collectives/... ./launcher/... ./internal/engine/remote/... ./rma/... \
		./sessions/... ./mam ./internal/host/dirty ./internal/control/change ./internal/control/changepage ./bench/stages ./bench/sam

.PHONY: fuzz-short
fuzz-short: ## every fuzz target for 10 s
	.ci/fuzz 10s

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (60s)
	.ci/fuzz $(FUZZTIME)

WAYS := Conformance|Scenes|DPP|Hands|Operations|Neighbor|Written|Resize|HundredThousand|Run$$|Arrays$$|Kill$$|AllAlgorithms|AgainstOracle

.PHONY: conformance
conformance: build ## all settings of the conformance suites, all ways of the tests of which make test runs a part
	GOMPI_TEST=long .ci/named '$(WAYS)' -timeout $(TESTTIMEOUT) $(VERBOSE)

.PHONY: soak
soak: build ## grow, shrink and kill for a long time; nothing may be left behind
	GOMPI_TEST=long .ci/named Soak -timeout $(SOAKTIMEOUT) $(VERBOSE)

.PHONY: stress
stress: build ## random programs against the oracle, the long run
	GOMPI_TEST=long .ci/named 'Stress|Random' -timeout $(SOAKTIMEOUT) $(VERBOSE)

.PHONY: cover
cover: build ## coverage of all packages by all tests, into bin/cover.html
	$(CEILING) $(TEST) -timeout $(TESTTIMEOUT) -coverpkg=./... -coverprofile=bin/cover.out ./...
	$(GO) tool cover -html=bin/cover.out -o bin/cover.html
	@$(GO) tool cover -func=bin/cover.out | tail -n 1

.PHONY: lint
lint: ## gofmt, go vet for amd64 and arm64, the same of the library elsewhere than on Linux, the rules of internal/test/archtest
	@bad=$$(gofmt -l $$(find . -name '*.go' -not -path '*/testdata/*' -not -path './bin/*')); \
		if [ -n "$$bad" ]; then echo "not gofmt'ed:" $$bad; exit 1; fi
	GOARCH=amd64 $(GO) vet -trimpath ./...
	GOARCH=arm64 $(GO) vet -trimpath ./...
	for os in darwin freebsd windows; do GOOS=$$os $(GO) vet -trimpath ./mpi/... ./rma ./sessions ./mpitest || exit 1; done
	$(TEST) ./internal/test/archtest

.PHONY: bench
bench: build ## latency, bandwidth and collectives of this machine
	bin/gompirun -np 2 bin/gompibench latency
	bin/gompirun -np 2 bin/gompibench bw
	bin/gompirun -np 2 bin/gompibench allreduce
	bin/gompirun -np $(NP) bin/gompibench allreduce

.PHONY: bench-peers
bench-peers: ## the same loops in gompi, Open MPI and MPICH, with ratios: ARGS=--help
	$(GO) run ./bench/peers $(ARGS)

.PHONY: bench-near
bench-near: ## two ranks whose processors share a cache, and such that do not, beside Open MPI and MPICH, with PEERS_LAB's newer ones if it is there, into docs/results/near-and-far.md
	$(GO) run ./bench/peers --jobs latency-shm-2,echo-shm-2,bw-shm-2,bibw-shm-2,latency-tcp-2,barrier-shm-2,bcast-shm-2,reduce-shm-2,allreduce-shm-2,allgather-shm-2,alltoallv-shm-2 \
		--rounds 5 --msec 50 --until-both 30m --doc docs/results/near-and-far.md $(ARGS) $(FURTHER_PEERS)

.PHONY: bench-redist
bench-redist: build ## redistribution between 1, 2, 4 and 8 ranks, into bin/redist.json; goes on where it was interrupted
	bin/gompibench redist --pairs 1,2,4,8 --into bin/redist.json $(ARGS)

.PHONY: bench-redist-large
bench-redist-large: build ## likewise between 20, 40, 80 and 160 ranks, into bin/redist-large.json
	bin/gompibench redist --pairs 20,40,80,160 --mib 64 --rounds 5 --strategies blocking,wd --iteration 100ms --into bin/redist-large.json $(ARGS)

PEERS_LAB ?= ../shared/lab/peers.sh
FURTHER_PEERS = $(if $(wildcard $(PEERS_LAB)),--peer "openmpi6=$(PEERS_LAB) cc openmpi$(COMMA)$(PEERS_LAB) run openmpi --oversubscribe" --peer "mpich5=$(PEERS_LAB) cc mpich$(COMMA)$(PEERS_LAB) run mpich")

.PHONY: bench-redist-peers
bench-redist-peers: ## redistribution beside Open MPI and MPICH, with PEERS_LAB's newer ones if it is there, into bin/redist-peers.json
	@mkdir -p bin
	$(GO) run ./bench/peers --jobs redist --rounds 3 --json bin/redist-peers.json $(ARGS) $(FURTHER_PEERS)

.PHONY: docs-redist
docs-redist: build ## the tables of docs/results/redistribution.md from what bench-redist, -large and -peers have written
	bin/gompibench redist --tables --doc docs/results/redistribution.md $(wildcard bin/redist.json bin/redist-large.json bin/redist-peers.json)

.PHONY: house
house: ## draw the packages and their imports into docs/house.svg
	$(GO) run ./internal/test/house . docs/house.svg

.PHONY: clean
clean: ## remove bin/
	rm -rf bin
