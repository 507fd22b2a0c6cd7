# Two commands are enough: `make discover` runs the main job, `make test` the tests. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: discover test check validate docs bench clean help

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/installed-%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fluxforge needs Python 3.11 or newer; found: $$($(PYTHON) --version). Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable ".[$*]"
	@touch $@

discover: $(VENV)/installed-test  ## the main job: a network, its formula, its certificate, a report
	@$(BIN)/fluxforge discover

test: $(VENV)/installed-test  ## the tests
	$(BIN)/python -m pytest -n auto

check: $(VENV)/installed-dev  ## formatting, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

validate: $(VENV)/installed-test  ## the slow studies
	$(BIN)/python -m pytest -n auto -m slow

docs: $(VENV)/installed-docs  ## the documentation, as pages that need no network
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(VENV)/installed-bench  ## benchmarks, each against a peer in the same run
	$(BIN)/fluxforge bench step
	$(BIN)/fluxforge bench train

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
