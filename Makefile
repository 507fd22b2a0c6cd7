# Two commands are enough: `make discover` runs the main job, `make test` the tests. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The tests of a file run in one worker, so that what they share is made once; files start in the order of conftest.py.
# (`validate` distributes single tests: its --dist, which is given later, replaces this one.)
# Dozens of processes are started: each would compile the package if it may not write bytecode.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: discover test check validate portable faults docs bench clean help

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# What is installed: `run` is the package alone; the others are extras of pyproject.toml. An extra that contains others
# counts for them too, so that `make test` after `make check` installs nothing.
CONTAINS_run := run
CONTAINS_docs := docs run
CONTAINS_test := test docs run
CONTAINS_dev := dev test docs run
CONTAINS_bench := bench run
TAKES_run := about a minute
TAKES_bench := several minutes: PyTorch is large

.NOTPARALLEL:  # two installations into one environment would disturb each other

$(VENV)/installed-%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fluxforge needs Python 3.11 or newer; found: $$($(PYTHON) --version). Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing fluxforge$(if $(filter run,$*),, with [$*]) and its dependencies into $(VENV) ($(or $(TAKES_$*),one to three minutes)) …"
	@$(PIP) install --quiet --constraint constraints.txt --editable ".$(if $(filter run,$*),,[$*])"
	@touch $(addprefix $(VENV)/installed-,$(CONTAINS_$*))

discover: $(VENV)/installed-run  ## the main job: a network, its formula, its certificate, a report
	@$(BIN)/fluxforge discover

test: $(VENV)/installed-test  ## the tests
	$(PYTEST)

check: $(VENV)/installed-dev  ## formatting, lint, types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini
	$(BIN)/lint-imports

validate: $(VENV)/installed-test  ## the slow studies, with XLA's optimisation
	XLA_FLAGS="$(XLA_FLAGS)" $(PYTEST) -m slow --dist worksteal

portable: $(VENV)/installed-test  ## the numerical tests as other processors would run them; ARGS="--list", ARGS="--all" …
	$(BIN)/python tests/portable.py $(ARGS)

faults: $(VENV)/installed-test  ## plant 30 faults, one at a time: are they seen? ARGS="0 7" plants some
	$(BIN)/python tests/faults.py $(ARGS)

docs: $(VENV)/installed-docs  ## the documentation, as pages that need no network
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(VENV)/installed-bench  ## benchmarks, each against a peer in the same run
	$(BIN)/fluxforge bench step
	$(BIN)/fluxforge bench train
	$(BIN)/fluxforge bench equations

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
