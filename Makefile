# Two commands: `make conformance` and `make test`. Both set up everything they need and redo only
# what has changed. `make help` lists the rest.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH ?= torch==2.13.0
DEVICE ?= accel
JOBS ?= $(shell nproc)
# More options for pytest, e.g. ARGS='--op add,sub --dtype float32'.
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMPS := build/stamps
PUBLISHED := reports/$(DEVICE)/torch-2.13
# One compute thread per process: the workers share the cores.
RUN := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

BACKEND_SOURCES := $(shell find reference_backend -type f \
	\( -name '*.cpp' -o -name '*.h' -o -name '*.py' -o -name '*.txt' -o -name 'pyproject.toml' \) \
	-not -path '*/build/*' -not -path '*/generated/*' -not -path '*/tests/*' -not -path '*.egg-info/*')
CXX_FILES = $(shell git ls-files -- '*.cpp' '*.h')

.DEFAULT_GOAL := help
.PHONY: help setup conformance test test-driver test-python report bench-suite lint format clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

$(STAMPS)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install -q --disable-pip-version-check 'setuptools>=77' wheel ninja
	@mkdir -p $(@D) && touch $@

$(STAMPS)/harness: $(STAMPS)/python pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation -e '.[dev]'
	@touch $@

$(STAMPS)/backend: $(STAMPS)/python $(BACKEND_SOURCES)
	PATH="$(abspath $(BIN)):$$PATH" MAX_JOBS=$(JOBS) $(BIN)/python -m pip install -q \
		--disable-pip-version-check --no-build-isolation --no-deps --force-reinstall ./reference_backend
	@touch $@

setup: $(STAMPS)/harness $(STAMPS)/backend ## .venv with torch, the harness and the reference backend

conformance: setup ## the main job: the whole suite on DEVICE (default accel), with reports
	$(RUN) --device=$(DEVICE) -n $(JOBS) $(ARGS)

test: setup ## the project's own tests: driver (plain, thread and address sanitizer), backend, harness
	$(MAKE) --no-print-directory test-driver
	$(MAKE) --no-print-directory test-python

test-driver:
	$(MAKE) --no-print-directory -j $(JOBS) -C reference_backend/driver test test-tsan test-asan

test-python: setup
	$(RUN) -n $(JOBS) tests reference_backend/tests $(ARGS)

report: conformance ## run the main job and publish its report under reports/
	$(BIN)/python -m conformance.report.publish build/conformance/$(DEVICE) $(PUBLISHED)

bench-suite: setup ## CPU time of the suite against upstream-style tests; a tenth: ARGS='--every 10'
	$(BIN)/python tests/bench/suite.py --device=$(DEVICE) $(ARGS)

lint: $(STAMPS)/harness ## ruff and clang-format, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

format: $(STAMPS)/harness ## rewrite the sources as `make lint` wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

clean: ## remove everything that was built, .venv included
	rm -rf $(VENV) build reference_backend/build reference_backend/csrc/aten/generated *.egg-info
