# SPDX-License-Identifier: BSD-3-Clause
# Short words in front of CMake; `make help` lists them. Each preset builds in build/<preset>.

PREFIX    ?= /usr/local
JOBS      ?= $(shell nproc)
TEST_JOBS ?= 2
SEED      ?= 1
NPROC     ?= $(shell nproc)
EPOCHS    ?= 10
MINUTES   ?= 10
DATA      ?= build/demo-data

# OpenBLAS falls back to SSE3 kernels, in silence, on a processor that is younger than itself.
BLAS_CORE = $(shell grep -qw avx512f /proc/cpuinfo && echo SKYLAKEX || \
                    { grep -qw avx2 /proc/cpuinfo && echo HASWELL; })

# What a build needs, and what its tests need beside that: `make install` asks for the first only.
PACKAGES = build-essential cmake ninja-build pkg-config python3 \
           libuv1-dev libssl-dev libmsgpack-dev libjansson-dev uthash-dev libopenblas-dev zlib1g-dev
TOOLS    = cc c++ cmake ninja pkg-config python3
MODULES  = libuv 'libssl >= 3' 'libcrypto >= 3' jansson zlib openblas
ifneq ($(MAKECMDGOALS),install)
PACKAGES += git iproute2 libcmocka-dev
TOOLS    += git ip
MODULES  += cmocka
endif
INSTALL  = apt-get update && \
           apt-get install -y --no-install-recommends $(PACKAGES)

.NOTPARALLEL:
.DEFAULT_GOAL := build
.PHONY: shake all build release deps demo gpt2 test neon-test conformance conformance-backends asan ubsan tsan coverage check models install docs torch-venv bench-deps \
        bench bench-peers bench-peers-full bench-overlap bench-ddp bench-startup bench-compressed bench-report clean help

## build     the libraries, tools, examples and tests, with debug information (preset dev)
all build: deps
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)

## release   the same, optimised (preset release)
release: deps
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

## deps      install what is missing (Debian, as root), or say which command does
deps:
	@missing=""; \
	for tool in $(TOOLS); do \
	    PATH="$$PATH:/usr/sbin:/sbin" command -v $$tool >/dev/null || missing="$$missing $$tool"; \
	done; \
	for module in $(MODULES); do \
	    pkg-config --exists "$$module" 2>/dev/null || missing="$$missing $$module"; \
	done; \
	pkg-config --exists msgpack || pkg-config --exists msgpack-c || missing="$$missing msgpack"; \
	echo '#include <uthash.h>' | cc -E - >/dev/null 2>&1 || missing="$$missing uthash"; \
	test -n "$$missing" || exit 0; \
	echo "missing:$$missing"; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    export DEBIAN_FRONTEND=noninteractive; $(INSTALL); \
	else \
	    echo "  next, as root on Debian: $(INSTALL)"; exit 1; \
	fi

## demo      train the tutorial network on NPROC processes (NPROC=, EPOCHS=, DATA=)
demo: release
	@test -d $(DATA) || { rm -rf $(DATA).part && build/release/bin/make_digits $(DATA).part && \
	    mv $(DATA).part $(DATA); }
	OPENBLAS_CORETYPE=$${OPENBLAS_CORETYPE:-$(BLAS_CORE)} \
	build/release/bin/tutti run --standalone --nproc-per-node=$(NPROC) \
	    build/release/bin/mnist --data $(DATA) --epochs $(EPOCHS)

## gpt2      train a language model on this repository's pages for ten minutes (NPROC=, MINUTES=, GPT2_OPTIONS=)
gpt2: release
	OPENBLAS_CORETYPE=$${OPENBLAS_CORETYPE:-$(BLAS_CORE)} \
	build/release/bin/tutti run --standalone --nproc-per-node=$(NPROC) \
	    build/release/bin/gpt2_train --minutes $(MINUTES) --out build/gpt2 $(GPT2_OPTIONS)

## test      build and run the whole test suite
test: build
	ctest --preset dev -j $(TEST_JOBS)

## shake     all tests with threads held up at random, from SEED=; what fails is to be read: promises in milliseconds are broken, too
shake: build
	LD_PRELOAD=$(CURDIR)/build/dev/lib/libshake.so SHAKE_IN=$(CURDIR)/build/dev SHAKE_SEED=$(SEED) \
	    ctest --preset dev -j $$(( 3 * $(TEST_JOBS) ))

## conformance  all cells of the conformance matrix that have not passed yet (an hour; may be interrupted)
conformance: release
	tests/conformance/run_matrix

## conformance-backends  the core of the matrix over every backend and transport that can be built here, in one table: some minutes
conformance-backends: build
	python3 -B tests/conformance/backends.py build/dev

## asan      the test suite under the address sanitizer; ubsan: undefined behaviour; tsan: data races
asan ubsan tsan: deps
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	ctest --preset $@ -j $(TEST_JOBS)

NEON = gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static

## neon-test  the kernels for aarch64 beside those of this machine; installs a cross compiler and qemu (Debian, as root)
neon-test: build
	@if command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64-static >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    export DEBIAN_FRONTEND=noninteractive; apt-get update && apt-get install -y --no-install-recommends $(NEON); \
	else echo "next, as root on Debian: apt-get install $(NEON)"; exit 1; fi
	ctest --preset dev -L neon

## models    the flag protocols in all interleavings, stores late (tests/models); installs spin (Debian, as root)
models: deps
	@if command -v spin >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    export DEBIAN_FRONTEND=noninteractive; apt-get update && apt-get install -y --no-install-recommends spin; \
	else echo "next, as root on Debian: apt-get install spin"; exit 1; fi
	cmake --preset dev
	ctest --preset dev -L model -j $(TEST_JOBS)

SLURM = slurmctld slurmd slurm-client munge

.PHONY: slurm-deps
## slurm-deps  Slurm and munge, for the tests that run one on two hosts of their own (`ctest -L slurm`); munge's package may start a munged of its own, which they do not use (Debian, as root)
slurm-deps:
	@if command -v srun >/dev/null && PATH="$$PATH:/usr/sbin:/sbin" command -v munged >/dev/null && \
	    PATH="$$PATH:/usr/sbin:/sbin" command -v slurmctld >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    export DEBIAN_FRONTEND=noninteractive; apt-get update && apt-get install -y --no-install-recommends $(SLURM); \
	else echo "next, as root on Debian: apt-get install $(SLURM)"; exit 1; fi

SECONDS ?= 60
FUZZERS = clang llvm afl++

.PHONY: fuzz fuzz-goal fuzz-afl fuzz-coverage fuzz-deps
fuzz-deps: deps
	@if command -v clang >/dev/null && command -v llvm-cov >/dev/null && command -v afl-fuzz >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    export DEBIAN_FRONTEND=noninteractive; apt-get update && apt-get install -y --no-install-recommends $(FUZZERS); \
	else echo "next, as root on Debian: apt-get install $(FUZZERS)"; exit 1; fi

## fuzz      every parser under libFuzzer, SECONDS= each (60); installs clang and afl++ (Debian, as root)
fuzz: fuzz-deps
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS) --target fuzz_targets
	python3 -B tests/fuzz/run.py --seconds $(SECONDS) $(FUZZ_OPTIONS)

FUZZ_GOAL ?= 10000000
FUZZ_MINUTES ?= 30

## fuzz-goal FUZZ_GOAL= executions of each (10,000,000) or FUZZ_MINUTES= (30) without sanitizers, then what was collected with them; goes on
fuzz-goal: fuzz-deps
	cmake --preset fuzz-swift
	cmake --build --preset fuzz-swift -j $(JOBS) --target fuzz_targets
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS) --target fuzz_targets
	python3 -B tests/fuzz/run.py --tool swift --goal $(FUZZ_GOAL) --minutes $(FUZZ_MINUTES) --seconds 60 --jobs $(JOBS) $(FUZZ_OPTIONS)
	python3 -B tests/fuzz/run.py --seconds 5 --jobs $(JOBS) $(FUZZ_OPTIONS)

## fuzz-afl  AFL++ on the store's server, the hello and members' messages, SECONDS= each
fuzz-afl: fuzz-deps
	cmake --preset fuzz-afl
	cmake --build --preset fuzz-afl -j $(JOBS) --target fuzz_store_server fuzz_hello fuzz_peer_frames
	python3 -B tests/fuzz/run.py --tool afl --seconds $(SECONDS) --targets store_server,hello,peer_frames $(FUZZ_OPTIONS)

## fuzz-coverage  the lines of each parser that seeds and what the fuzzers have collected reach
fuzz-coverage: fuzz-deps
	cmake --preset fuzz-coverage
	cmake --build --preset fuzz-coverage -j $(JOBS) --target fuzz_targets
	python3 -B tests/fuzz/run.py --coverage

## coverage  the test suite with counters, and a summary where gcovr is installed
coverage: deps
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	ctest --preset $@ -j $(TEST_JOBS)
	@if command -v gcovr >/dev/null; then \
	    gcovr --gcov-ignore-parse-errors -r . --object-directory build/coverage -e '.*_test\.c' -f src -f train -s; \
	else echo "no summary: gcovr is not installed"; fi

## check     test, asan, ubsan and tsan
check: test asan ubsan tsan

## install   into PREFIX= (default /usr/local), below DESTDIR= if set; builds only that, in build/install
install: deps
	cmake --preset release -B build/install -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=$(abspath $(PREFIX))
	cmake --build build/install -j $(JOBS) --target tutti tutti_static tutti_train tutti_train_static tutti_command tutti_plugins
	cmake --install build/install

## docs      docs/env.md from the source, and the API reference in build/doxygen where doxygen is installed
docs: build
	cmake --build --preset dev --target env_md
	@if command -v doxygen >/dev/null; then \
	    mkdir -p build && doxygen Doxyfile && echo "build/doxygen/html/index.html"; \
	else echo "no API reference: doxygen is not installed"; fi

# Outside of the tree: it is large, and survives `make clean`. The tests with PyTorch look there, or where
# TUTTI_TORCH_PYTHON says.
TORCH_VENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tutti/torch-venv

## torch-venv  PyTorch into ~/.cache/tutti, for the tests against its store and launcher, and for bench
torch-venv:
	@test ! -x $(TORCH_VENV)/bin/torchrun || { echo "$(TORCH_VENV) is there"; exit 0; }; \
	python3 -m venv $(TORCH_VENV) && $(TORCH_VENV)/bin/pip install --quiet torch numpy

TORCH_PYTHON = $(or $(TUTTI_TORCH_PYTHON),$(TORCH_VENV)/bin/python)
TORCH_SITE   = $(CURDIR)/build/torch/site

.PHONY: torch-plugin test-torch
torch-plugin: deps
	$(MAKE) install PREFIX=$(CURDIR)/build/torch/prefix DESTDIR=
	PKG_CONFIG_PATH=$(CURDIR)/build/torch/prefix/lib/pkgconfig $(TORCH_PYTHON) -m pip install --quiet --no-build-isolation \
	    --no-deps --no-cache-dir --upgrade --target $(TORCH_SITE) ./python

## test-torch  the plug-in for PyTorch, built and tested in build/torch; skips where there is no PyTorch (TUTTI_TORCH_PYTHON=)
test-torch:
	@if ! $(TORCH_PYTHON) -c 'import torch.distributed' 2>/dev/null; then \
	    echo "SKIP: $(TORCH_PYTHON) has no PyTorch"; echo "  next: make torch-venv, or TUTTI_TORCH_PYTHON=/path/to/python"; exit 0; fi; \
	$(MAKE) torch-plugin && cd python/tests && PYTHONPATH=$(TORCH_SITE) $(TORCH_PYTHON) -B -m unittest discover $(TORCH_TESTS)

.PHONY: bench-torch
TORCH_ROWS ?= bench/results/torch-$(shell date -u +%Y%m%d-%H%M).tsv
## bench-torch  tutti and gloo as backends of one PyTorch program: all_reduce, and steps under DDP, in turns: some minutes (TORCH_ROWS=)
bench-torch: torch-plugin
	PYTHONPATH=$(TORCH_SITE) $(TORCH_PYTHON) -B bench/torch_backends.py --out $(TORCH_ROWS) $(TORCH_BENCH_OPTIONS)

PEERS = openmpi-bin libopenmpi-dev mpich libmpich-dev libucx-dev gnuplot-nox iperf3 iproute2
ROWS ?= bench/results/core-$(shell date -u +%Y%m%d-%H%M).tsv
FULL ?= bench/results/full.tsv

## bench-deps  Open MPI, MPICH, UCX, iperf3 and gnuplot for plug-ins, bench-peers and bench-net (Debian, as root), or the command that gets them
bench-deps:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    export DEBIAN_FRONTEND=noninteractive; apt-get update && apt-get install -y --no-install-recommends $(PEERS); \
	else echo "next, as root on Debian: apt-get install $(PEERS)"; exit 1; fi

## bench     a few cells of everybody who is there, in two minutes
bench: release
	cmake --build --preset release -j $(JOBS) --target bench_peers
	rm -f build/bench.tsv
	python3 -B bench/peers.py --bin build/release/bin --out build/bench.tsv --minutes 2 --brief \
	    --ops all_reduce,broadcast,all_to_all --sizes 4,64K,4M --ranks 2,4 --rounds 2 $(PEERS_OPTIONS)

## bench-peers  tutti, Open MPI, MPICH, gloo and the machine's limits in one run: 40 minutes on a quiet machine (ROWS=)
bench-peers: release
	cmake --build --preset release -j $(JOBS) --target bench_peers
	python3 -B bench/peers.py --bin build/release/bin --out $(ROWS) $(PEERS_OPTIONS)

## bench-peers-full  the same in all sizes, for hours; may be interrupted, and goes on where it was (FULL=)
bench-peers-full: release
	cmake --build --preset release -j $(JOBS) --target bench_peers
	python3 -B bench/peers.py --bin build/release/bin --grid full --dtypes f32,bf16 --out $(FULL) $(PEERS_OPTIONS)

.PHONY: bench-net bench-net-full bench-net-overlap
NET ?= bench/results/net-$(shell date -u +%Y%m%d-%H%M).tsv
NET_FULL ?= bench/results/net-full.tsv

## bench-net  the same between 2 and 4 hosts (namespaces) on links of 1 and 10 Gb/s: 40 minutes, as root, on a quiet machine (NET=)
bench-net: release
	cmake --build --preset release -j $(JOBS) --target bench_peers
	python3 -B bench/net.py --bin build/release/bin --out $(NET) $(NET_OPTIONS)

## bench-net-full  2, 4 and 8 hosts, all sizes, for hours; may be interrupted, and goes on where it was (NET_FULL=)
bench-net-full: release
	cmake --build --preset release -j $(JOBS) --target bench_peers
	python3 -B bench/net.py --bin build/release/bin --grid full --out $(NET_FULL) $(NET_OPTIONS)

OVERLAP ?= bench/results/overlap-$(shell date -u +%Y%m%d-%H%M).tsv

## bench-overlap  an all_reduce of 25 MiB behind matrix products, by the same: half a minute (OVERLAP=)
bench-overlap: release
	cmake --build --preset release -j $(JOBS) --target bench_peers
	python3 -B bench/overlap.py --bin build/release/bin --out $(OVERLAP) $(OVERLAP_OPTIONS)

NET_OVERLAP ?= bench/results/overlap-net-$(shell date -u +%Y%m%d-%H%M).tsv

## bench-net-overlap  the same between two hosts (namespaces) on a link of 1 Gb/s, as root: a minute (NET_OVERLAP=)
bench-net-overlap: release
	cmake --build --preset release -j $(JOBS) --target bench_peers
	python3 -B bench/overlap.py --bin build/release/bin --out $(NET_OVERLAP) --hosts 2x1 --gbit 1 $(OVERLAP_OPTIONS)

STEPS ?= bench/results/ddp-$(shell date -u +%Y%m%d-%H%M).tsv

## bench-ddp  the time of a training step beside PyTorch's DDP on gloo, 1 and 2 processes: some minutes (STEPS=)
bench-ddp: release
	python3 -B bench/ddp_step.py --bin build/release/bin --out $(STEPS) $(DDP_OPTIONS)

START ?= bench/results/startup-$(shell date -u +%Y%m%d-%H%M).tsv

## bench-startup  from the command to the first all_reduce, 2 to 256 processes, beside gloo's: some minutes (START=)
bench-startup: release
	cmake --build --preset release -j $(JOBS) --target startup_rank
	python3 -B bench/startup.py --bin build/release/bin --out $(START) $(STARTUP_OPTIONS)

COMPRESSED ?= bench/results/compressed-$(shell date -u +%Y%m%d-%H%M).tsv

## bench-compressed  sums of 8 bits and without blocks of zeros beside dense ones, links of 1 and 10 Gb/s: two minutes, as root
bench-compressed: release
	cmake --build --preset release -j $(JOBS) --target compressed
	python3 -B bench/compressed.py --bin build/release/bin --out $(COMPRESSED) $(COMPRESSED_OPTIONS)

REPORT ?= bench/results/full-20261122-a.tsv bench/results/full-20261122-d.tsv
REPORT_HOSTS ?= bench/results/grid-net-20261123-b.tsv
REPORT_FAR ?= bench/results/delay-20261123.tsv

## bench-report  docs/performance.md, performance-hosts.md and performance-far.md from rows of runs (REPORT=, REPORT_HOSTS=, REPORT_FAR=)
bench-report:
	python3 -B bench/report.py $(REPORT) --page docs/performance.md --pictures docs/pictures
	python3 -B bench/net_report.py $(REPORT_HOSTS) --page docs/performance-hosts.md --pictures docs/pictures
	python3 -B bench/net_report.py $(REPORT_FAR) --page docs/performance-far.md

## clean     remove build/
clean:
	rm -rf build

## help      this list
help:
	@sed -n 's/^## /  make /p' Makefile
