# SPDX-License-Identifier: Apache-2.0
# The entry points for people; `make` alone lists them. CMake builds (CMakePresets.json); this file only combines
# steps.

PRESET ?= release
PROGRAM := build/$(PRESET)/bin/gpusonde
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help setup build demo test check nightly bench bench-analyze bench-compare bench-diagnose bench-fleet package deb docs fmt clean configure web

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{printf "  make %-13s %s\n", $$1, $$2}'

setup: ## install everything that any target needs
	@tools/setup build check test bench

build: ## the program (build/release/bin/gpusonde) and its UI
	@tools/setup build
	@$(MAKE) --no-print-directory configure FLAGS="-DGPUSONDE_TESTS=OFF -DGPUSONDE_BENCH=OFF"
	@cmake --build build/$(PRESET) -j$(JOBS)
	@$(MAKE) --no-print-directory web

demo: build ## profile a training program and show it in the browser (DURATION=20 ends by itself)
	@GPUSONDE=$(CURDIR)/$(PROGRAM) DURATION=$(DURATION) tools/demo

test: ## every test that this machine can run; PRESET=asan|tsan|dev for another build
	@tools/setup build test
	@$(MAKE) --no-print-directory configure FLAGS="-DGPUSONDE_TESTS=ON -DGPUSONDE_BENCH=OFF"
	@$(MAKE) --no-print-directory web & cmake --build build/$(PRESET) -j$(JOBS) && wait $$!
	@tools/test --build build/$(PRESET)

check: ## format, static analysis, layering, documentation
	@tools/setup build check
	@tests/check/run

nightly: ## sanitizers over the unit tests, a minute of each fuzzer, a busy day; writes docs/nightly.md (STEPS="alone asan tsan fuzz day trials")
	@tools/setup build test
	@tools/nightly $(STEPS)

bench: ## measure, beside peers; writes bench/results/ and docs/performance.md
	@tools/setup build bench
	@$(MAKE) --no-print-directory configure FLAGS="-DGPUSONDE_TESTS=OFF -DGPUSONDE_BENCH=ON"
	@cmake --build build/$(PRESET) -j$(JOBS)
	@$(MAKE) --no-print-directory web
	@bench/run.py --build build/$(PRESET)
	@tools/performance_doc.py

bench-analyze: ## measure trace analysis alone (QUICK=1: small traces, once; LARGE=1: 100 M events too; TRACES=FOLDER keeps them)
	@tools/setup build bench
	@$(MAKE) --no-print-directory configure FLAGS="-DGPUSONDE_TESTS=OFF -DGPUSONDE_BENCH=ON"
	@cmake --build build/$(PRESET) -j$(JOBS) --target gpusonde gpusonde_mpi synthetic_trace bench_analyze_baselines
	@bench/run.py --build build/$(PRESET) analyze
	@tools/performance_doc.py

bench-compare: ## measure how often compare reports changes that are none, and finds those that are (PAIRS=200)
	@tools/setup build bench
	@$(MAKE) --no-print-directory configure FLAGS="-DGPUSONDE_TESTS=OFF -DGPUSONDE_BENCH=OFF"
	@cmake --build build/$(PRESET) -j$(JOBS) --target gpusonde
	@PAIRS=$(or $(PAIRS),200) bench/run.py --build build/$(PRESET) compare
	@tools/performance_doc.py

bench-diagnose: ## a slice of the diagnosis's benchmark (SEED=1 SPLIT=train COUNT=40; QUICK=1: smoke, no accuracy)
	@tools/setup build bench
	@$(MAKE) --no-print-directory configure FLAGS="-DGPUSONDE_TESTS=OFF -DGPUSONDE_BENCH=OFF"
	@cmake --build build/$(PRESET) -j$(JOBS) --target gpusonde gpusonde_inject simgpu simgpu_libraries hpc
	@GPUSONDE_BUILD=$(CURDIR)/build/$(PRESET) bench/diagnose/bench.py $(if $(QUICK),quick,run --split $(or $(SPLIT),train) --seed $(or $(SEED),1) --count $(or $(COUNT),40))

bench-fleet: ## measure private fleet telemetry alone
	@tools/setup build bench
	@$(MAKE) --no-print-directory configure FLAGS="-DGPUSONDE_TESTS=OFF -DGPUSONDE_BENCH=ON"
	@cmake --build build/$(PRESET) -j$(JOBS) --target gpusonde bench_fleet_identification bench_privacy bench_timing
	@bench/run.py --build build/$(PRESET) fleet
	@tools/performance_doc.py

package: build ## a .tar.gz that runs on any x86-64 Linux >= 5.15, from any folder (docs/package.md)
	@tools/package --build build/$(PRESET)

deb: build ## a Debian package of the same (docs/package.md); installing it starts nothing
	@tools/debian-package --build build/$(PRESET)

docs: ## write the pages that are made from the code
	@tools/setup build check
	@tests/check/run --write docs

fmt: ## format all sources
	@tools/setup check
	@tests/check/run --write format

clean: ## remove what was built; downloads (build/deps) and installed packages stay
	@find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} +
	@rm -rf web/dist

# The steps below are parts of those above.

# The presets' own settings come first, FLAGS win; nothing is compiled again because of them.
configure:
	@mkdir -p build/$(PRESET)
	@cmake --preset $(PRESET) $(FLAGS) > build/$(PRESET)/configure.log 2>&1 || { cat build/$(PRESET)/configure.log; exit 1; }

web:
	@if [ -f web/package.json ]; then cd web && npm run --silent build; fi
