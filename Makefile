# `make demo` and `make test` work from a fresh clone on a machine with Python 3.11 or later, and nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

.PHONY: demo test lint bench docs stubs clean

demo: $(VENV)/.demo
	$(BIN)/plackett demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks.losses

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

# What is written from the losses themselves: the typed face of the modules, and the page of cards.
stubs: $(VENV)/.test
	$(BIN)/python -m tools.stubs
	$(BIN)/python -m tools.cards
	$(BIN)/python -m tools.costs
	$(BIN)/python -m tools.cifar100
	$(BIN)/python -m tools.speed
	$(BIN)/python -m tools.commands

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'plackett needs Python 3.11 or later; this is %d.%d. Name another one: make PYTHON=python3.12 ...' % sys.version_info[:2])"
	$(PYTHON) -m venv $(VENV)

# A stamp an extra: installed again when what it should hold changes.
$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[demo,report]'
	touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache
