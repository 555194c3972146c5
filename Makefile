# Every target works from a bare checkout: it makes a virtual environment in .venv with $(PYTHON)
# and installs there what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NAMES ?=
AGAINST ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-xla bounds fuzz libraries bench bench-operations roofline check docs clean

help:
	@echo "make demo    train two networks on handwritten digits with Styrax (about a minute)"
	@echo "make test    run the tests"
	@echo "make test-all  make test, bounds, test-xla, fuzz and libraries, one after another"
	@echo "make test-xla  run the tests of the second backend on the XLA of two PJRT plugins, which it installs (130 MB)"
	@echo "make bounds  run the tests with every access of compiled code checked"
	@echo "make fuzz    compare random programs with JAX's; SEED=1 COUNT=5000 SECONDS=600 FOLDER=.fuzz/1, which is resumed"
	@echo "make libraries  run the own tests of libraries written for JAX, which it installs (1.5 GB, hours); goes on"
	@echo "             where it was stopped; NAMES='optax chex' picks libraries, SECONDS=600 FOLDER=.libraries"
	@echo "make bench   compare speed with JAX; NAMES='softmax digits' picks workloads"
	@echo "make bench AGAINST=commit  compare speed with that commit's tree; also with NAMES, QUICK=1,"
	@echo "             PAIRS=8 (processes for each row), SECONDS=60 (in which a row gets more, while it is unclear)"
	@echo "make bench-operations  compare the speed of single operations with JAX's; MODE=grad (f32, x64, bf16, f16, grad,"
	@echo "             eager, vmap) ODD=1 START=100 QUICK=1, OTHER=folder/src for another tree of Styrax; also with NAMES"
	@echo "make roofline  show what each loop nest of the benchmarks takes of what the machine can do; with NAMES"
	@echo "make check   ruff and mypy"
	@echo "make docs    write docs/primitives.md from the rule tables"
	@echo "make clean   remove .venv and caches"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp per set of requirements; a newer pyproject.toml installs again. Bytecode is made as for installed packages.
$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/xla.stamp: tests/xla/pjrt/requirements.txt $(VENV)/test.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/python -m styrax examples/digits.py

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n 2 --dist loadfile -q tests

test-all: test bounds test-xla fuzz libraries

test-xla: $(VENV)/xla.stamp
	STYRAX_TEST_XLA=1 $(BIN)/python -m pytest -q tests/xla/pjrt

bounds: $(VENV)/test.stamp
	STYRAX_DEBUG=bounds $(BIN)/python -m pytest -n 2 --dist loadfile -q tests

fuzz: $(VENV)/test.stamp
	$(BIN)/python -m tests.fuzz $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) \
	    $(if $(SECONDS),--seconds $(SECONDS)) $(if $(FOLDER),--folder $(FOLDER))

# The libraries have an environment of their own.
libraries: | $(BIN)/python
	$(BIN)/python -m tools.libraries $(if $(SECONDS),--seconds $(SECONDS)) $(if $(FOLDER),--folder $(FOLDER)) $(NAMES)

# JAX is installed for comparisons with it only.
bench: $(VENV)/$(if $(AGAINST),demo,test).stamp
	$(BIN)/python -m benchmarks $(if $(AGAINST),--against $(AGAINST)) $(if $(QUICK),--quick) \
	    $(if $(PAIRS),--pairs $(PAIRS)) $(if $(SECONDS),--limit $(SECONDS)) $(NAMES)

bench-operations: $(VENV)/$(if $(OTHER),demo,test).stamp
	$(BIN)/python -m benchmarks.operations $(if $(MODE),--mode $(MODE)) $(if $(ODD),--odd) $(if $(QUICK),--quick) \
	    $(if $(START),--start $(START)) $(if $(OTHER),--other $(OTHER)) $(NAMES)

roofline: $(VENV)/demo.stamp
	$(BIN)/python -m styrax -m benchmarks.roofline $(NAMES)

check: $(VENV)/test.stamp
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

docs: $(VENV)/test.stamp
	$(BIN)/python -m tools.primitives > docs/primitives.md

clean:
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
