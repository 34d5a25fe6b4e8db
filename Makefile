# Everything runs in .venv; the first target that needs it makes it. Quick the second time.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup quickstart test test-slow mutants check format bench clean
.DEFAULT_GOAL := test

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[all,peers,dev]"
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-deps timm
	$(BIN)/python -m pip install --quiet -c constraints.txt kenlm || echo 'no kenlm, which needs a C++ compiler: tests beside it are skipped'
	touch $(READY)

setup: $(READY)  ## the environment, with all extras and the peers that tests and benchmarks compare with

quickstart: $(READY)  ## train on the embedded text for about a minute, with the loss falling
	$(BIN)/weft tour
	$(BIN)/weft train demo --minutes 1 --sample "The function"

test: $(READY)  ## the quick tests
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(READY)  ## the rest: fresh clone, speed-independent but long
	$(BIN)/python -m pytest -m slow

mutants: $(READY)  ## break the code on purpose, one thing at a time: a test must fail for each
	$(BIN)/python tests/mutations.py

check: $(READY)  ## what decides whether a change lands
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) test

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## ratios to peers, one JSON line each
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/training.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache build dist
