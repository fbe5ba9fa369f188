# Two commands do everything: `make demo` and `make test`.
# Both make their own .venv; nothing outside this folder is touched.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo install test lint types layers pytest test-real soak bench clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# The stamps are older than pyproject.toml whenever its dependencies may have changed.
$(VENV)/.run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("error: mulligan needs Python 3.11 or newer, found " + sys.version.split()[0] + "\n\nhint: make PYTHON=/path/to/python3.11 …")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing mulligan into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.run
	@echo "installing the development tools into $(VENV) (about a minute the first time) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.run ## See agent programs survive a limit, a crash and a stall, and tools that act once
	@$(BIN)/python examples/demo.py

install: $(VENV)/.dev ## Make .venv with the development tools

test: lint types layers pytest ## Lint, types, layers and all tests

lint: $(VENV)/.dev ## ruff: rules and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .

types: $(VENV)/.dev ## mypy and pyright, both strict
	@$(BIN)/mypy
	@$(BIN)/pyright --project pyproject.toml

layers: $(VENV)/.dev ## Imports go downward only
	@$(BIN)/lint-imports

pytest: $(VENV)/.dev ## The tests alone
	@$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist worksteal

test-real: $(VENV)/.dev ## litellm and real agent programs under faults (npm, 2 GB, an hour)
	@$(BIN)/python tests/real/litellm_faults.py "$$(PYTHON=$(BIN)/python tests/real/install-litellm)"
	@$(BIN)/python tests/real/programs.py "$$(tests/real/install-programs)"
	@$(BIN)/python tests/real/resume.py "$$(tests/real/install-programs)"
	@$(BIN)/python tests/real/shown.py "$$(tests/real/install-programs)"
	@$(BIN)/python tests/real/runs.py "$$(tests/real/install-programs)" --write

# A test of the soak may take as long as it needs.
SOAK = $(BIN)/pytest -o faulthandler_timeout=0

soak: $(VENV)/.dev ## The long loops; writes bench/results/soak.json; then processes killed hundreds of times
	@$(BIN)/python bench/soak.py
	@MULLIGAN_SOAK=200 $(SOAK) tests/contracts/test_kill_loops.py tests/run/plan/test_kill.py
	@MULLIGAN_SOAK=100 $(SOAK) tests/run/test_kill.py tests/run/git/test_kill.py tests/regressions/test_plan_locks.py
	@MULLIGAN_SOAK=125 $(SOAK) tests/run/test_worker_kill.py tests/run/test_wrapper_kill.py
	@MULLIGAN_SOAK=40 $(SOAK) tests/contracts/test_store_attacks.py tests/run/test_other_hosts.py

bench: $(VENV)/.dev ## Every claim, measured side by side
	@broken=0; for b in bench/[a-z]*.py; do case $$b in */soak.py) ;; *) $(BIN)/python $$b || broken=1;; esac; done; exit $$broken

clean: ## Remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
