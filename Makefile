# `make` prints this help. The two that matter: `make run` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CASES ?= 100000
ENGINE ?= all
KILLS ?= 50

.DEFAULT_GOAL := help

help: ## this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## a virtual environment with everything, in .venv

$(READY): pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "deltastar needs Python 3.11 or newer; say which with: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || ./scripts/install-venv
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

run: $(READY) java ## watch the example on Spark: rings of money transfers, as they close and open
	@./examples/transfers/watch $(BIN)/deltastar

java:
	@./scripts/install-java

test: $(READY) java ## all tests, lint and types
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto

test-fast: $(READY) ## the tests that take under two minutes
	$(BIN)/pytest -n auto -m "not slow"

test-differential: $(READY) ## CASES=100000 random cases of each engine (ENGINE=kernel|bytes|paper|all) against the reference
	$(BIN)/python -m tests.differential $(CASES) --engine $(ENGINE)

test-spark: $(READY) java ## every published stream on Spark, with 1, 2, 3 and 8 shards, in one and in many micro-batches
	$(BIN)/pytest -n 2 tests/spark --every-stream

test-kills: $(READY) java ## KILLS=50 runs on Spark, each killed at a random moment and continued
	$(BIN)/pytest tests/spark/test_kills.py --kills $(KILLS)

check: $(READY) ## lint and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## rewrite the source in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(READY) ## pin all dependencies anew, with hashes
	./scripts/lock $(BIN)/python

clean: ## remove what the targets above made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis out

.PHONY: help setup run java test test-fast test-differential test-spark test-kills check format lock clean
