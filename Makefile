# SPDX-License-Identifier: Apache-2.0
# The front door. `make help` lists what there is; CMake does the work below build/.

.DEFAULT_GOAL := help
SHELL := /bin/sh
BUILD ?= build
SEEDS ?= 200
SECONDS ?= 60
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CACHE ?= $(HOME)/.cache/weft
export WEFT_DATA ?= $(abspath ../shared/data)
export WEFT_CASES ?= $(abspath ../shared/cases)
export WEFT_CACHE ?= $(CACHE)

configure = cmake --preset $(1) -B $(BUILD)/$(1) >/dev/null
compile = ninja -C $(BUILD)/$(1) -j $(JOBS) --quiet

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

.PHONY: deps-build
deps-build:
	@cmake/deps build

.PHONY: build
build: deps-build ## the program, release build, at build/release/cmd/weft
	@cmake --preset release -B $(BUILD)/release -DWEFT_TESTS=OFF >/dev/null
	@$(call compile,release) weft
	@echo "built $(BUILD)/release/cmd/weft"

.PHONY: demo
demo: build ## a simulated day of a GPU inference fleet, with its bill
	@$(BUILD)/release/cmd/weft simulate

.PHONY: dev
dev: ## the program and all tests, debug build
	@cmake/deps build test
	@$(call configure,dev)
	@$(call compile,dev)

.PHONY: test
test: dev ## the whole suite; what cannot run says SKIPPED and why
	@test/run-suite

.PHONY: unit
unit: dev ## unit, lint and scenario tests of the debug build
	@ctest --test-dir $(BUILD)/dev --output-on-failure -j $(JOBS)

.PHONY: asan tsan
asan: ## unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@cmake/deps build test
	@$(call configure,asan) && $(call compile,asan)
	@ctest --test-dir $(BUILD)/asan --output-on-failure -j $(JOBS) -LE 'lint|e2e'
tsan: ## the tests that use threads under ThreadSanitizer
	@cmake/deps build test
	@$(call configure,tsan) && $(call compile,tsan)
	@ctest --test-dir $(BUILD)/tsan --output-on-failure -j $(JOBS) -LE 'lint|e2e'

.PHONY: sim
sim: dev ## fault-injection simulator: SEEDS=200, or SEED=n for one with its timeline
	@$(if $(SEED),$(BUILD)/dev/test/sim/test_sim --seed $(SEED) --verbose,$(BUILD)/dev/test/sim/test_sim --seeds $(SEEDS) --commit $(shell git rev-parse --short HEAD))

.PHONY: fuzz
fuzz: ## every fuzz target for SECONDS=60
	@cmake/deps build test fuzz
	@$(call configure,fuzz) && $(call compile,fuzz) fuzzers
	@test/fuzz/run $(BUILD)/fuzz $(SECONDS)

.PHONY: e2e
e2e: dev ## end to end: a real control plane and real servers on loopback
	@cmake/deps e2e
	@test/e2e/run

.PHONY: bench
bench: bench-world bench-idle ## all benchmarks; tables, and JSON below build/bench

bench_program = @cmake --preset release -B $(BUILD)/release -DWEFT_TESTS=ON >/dev/null && $(call compile,release) $(1) && mkdir -p $(BUILD)/bench && $(BUILD)/release/test/bench/$(1) $(BUILD)/bench/$(1).json
.PHONY: bench-world bench-idle
bench-world: ## decoding: MB/s and bytes a pod
	@cmake/deps build test
	$(call bench_program,bench_decode)
bench-idle: ## an idle controller on 1,000 nodes and 10,000 pods: CPU and memory
	@cmake/deps build test
	$(call bench_program,bench_idle)

.PHONY: lint
lint: dev ## arrows, cycles, purity, lengths, format, documents in step
	@ctest --test-dir $(BUILD)/dev --output-on-failure -L lint

.PHONY: docs
docs: dev ## writes the generated reference pages again
	@$(BUILD)/dev/cmd/weft-reference docs/reference

.PHONY: format
format: ## clang-format over everything
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

PREFIX ?= /usr/local
.PHONY: install
install: build ## the program into DESTDIR/PREFIX
	@install -D -m 755 $(BUILD)/release/cmd/weft $(DESTDIR)$(PREFIX)/bin/weft

.PHONY: package
package: build ## a .deb and the image's root below build/package
	@cmake/deps package
	@deploy/package $(BUILD)

.PHONY: clean
clean: ## removes build/
	@rm -rf $(BUILD)
