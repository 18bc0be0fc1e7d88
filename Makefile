# Two commands do everything on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help install run test test-slow test-kernels reliability mutation docs test-docs lint clean

help:
	@echo 'make run           install into .venv; SGCT + SANE, the strong recipe and EASE on the embedded data set'
	@echo 'make test          install into .venv and run the tests'
	@echo 'make test-slow     the tests with full products and long runs'
	@echo 'make test-kernels  ranking, serving and resume tests with the kernels of other processors'
	@echo 'make reliability   every test of a fault; writes the table of docs/reliability.md'
	@echo 'make mutation      plants faults in the code, a sample of SAMPLE a package: do the tests notice? (hours)'
	@echo 'make docs          the documentation as a site in build/docs, without the network'
	@echo 'make test-docs     every command of README and docs, and every notebook, at small sizes'
	@echo 'make lint          ruff and mypy'
	@echo 'make clean         delete .venv (runs and data stay)'

$(VENV)/.installed: setup.cfg setup.py constraints.txt
	@echo 'installing into $(VENV) (TensorFlow is large: this takes a few minutes the first time)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) -e '.[test]'
	touch $@

install: $(VENV)/.installed

run: install
	$(BIN)/python experiments/run_incremental.py --dataset=drift --kd=sgct --sane --workdir=runs/drift-sgct-sane-seed0
	$(BIN)/python experiments/run_incremental.py --dataset=drift --recipe=strong --workdir=runs/drift-strong-seed0
	$(BIN)/python experiments/run_incremental.py --dataset=drift --peer=ease --workdir=runs/drift-ease
	$(BIN)/graphsane compare runs/drift-sgct-sane-seed0 runs/drift-strong-seed0 runs/drift-ease --output=runs/compare

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not slow'

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# What must not rest on how one processor rounds.
RESUME = tests/runs/test_incremental.py::test_
KERNEL_TESTS = $(addprefix tests/evaluation/test_,ranking.py limits.py protocol.py second_opinion.py) \
  $(addprefix tests/serving/test_,export.py signatures.py) tests/negatives/test_ranked.py \
  $(addprefix $(RESUME),saved_model_gives_the_models_own_ranking blocks_one_at_a_time_give_the_same_numbers)
KERNELS = OPENBLAS_CORETYPE=Haswell OPENBLAS_CORETYPE=Sandybridge TF_ENABLE_ONEDNN_OPTS=0

test-kernels: $(VENV)/.installed-test
	for kernel in $(KERNELS); do echo "$$kernel"; \
	  env $$kernel $(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow' $(KERNEL_TESTS) || exit 1; done

reliability: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -m 'fault and not slow' --faults=docs/reliability.md

$(VENV)/.installed-mutation: $(VENV)/.installed-test
	$(PIP) -e '.[mutation]'
	touch $@

# Goes on where it was cut off; OPTIONS=--again tests survivors once more (with --long: by whole runs), --report only shows.
SAMPLE ?= 60
SEED ?= 1
OPTIONS ?=
mutation: $(VENV)/.installed-mutation
	nice -n 15 $(BIN)/python -m tests.mutation --sample=$(SAMPLE) --seed=$(SEED) $(OPTIONS)

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) -e '.[docs]'
	touch $@

# Warnings are errors, and so is whatever a page would fetch from the network (docs/check_site.py).
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test-docs: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 -m slow tests/test_documents.py tests/test_notebooks.py

$(VENV)/.installed-lint: $(VENV)/.installed-test
	$(PIP) -e '.[lint]'
	touch $@

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV)
