# Two commands set everything up on a machine with python3 (3.11 or newer) and a C compiler:
#   make demo    a virtual environment, the package, and the report of a built-in scenario
#   make test    the same environment with the test tools, and every test
# make check is what has to pass before a commit: lint, types, import contracts, tests.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PEERS  := .venv-peers
SITE   := .site
# the software that reads the exports
READERS := .venv-consumers
FOCUS   := .venv-focus

.PHONY: demo fleet torch consumers quick first test tests check lint types contracts fmt schema screenshots site bench clean

demo: $(VENV)/.installed
	@$(BIN)/ckptcost model
	@if [ -t 1 ]; then printf '\nNext: %s opens the screen; docs/quickstart.md\n' '$(BIN)/ckptcost'; fi

# what `ckptcost fleet` needs besides: pandas, pyarrow and Dask, some 300 MB
fleet: $(VENV)/.fleet

# the tests that use PyTorch skip without it; it takes about 1 GB, or several where the registry gives the build for GPUs
torch: $(VENV)/.torch

# the tests that hand exports to other software skip without it; it takes about 1 GB
consumers: $(READERS)/.installed $(FOCUS)/.installed

# all but the first edition, and nothing that is waited for
quick: $(VENV)/.tested
	$(BIN)/python -m pytest -n 2 -q -m "not slow" --ignore=tests/first tests

# measuring, fleet and the screen of the first edition
first: $(VENV)/.tested
	$(BIN)/python -m pytest -n 3 -q tests/first

test: $(VENV)/.tested
	@$(MAKE) --no-print-directory tests

# CI has two processors, and a third of the time of a test is waiting: three workers are a fifth quicker than two
tests:
	$(BIN)/python -m pytest -n 3 -q tests

check: $(VENV)/.tested lint types contracts tests

lint:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types:
	$(BIN)/mypy

contracts:
	$(BIN)/lint-imports

fmt: $(VENV)/.tested
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

schema: $(VENV)/.tested
	$(BIN)/python -m ckptcost.first.report.schema_file

# needs Chromium, which turns what the screen draws into pictures
screenshots: $(VENV)/.tested
	$(BIN)/python docs/screenshots/take.py

# the documentation as a folder of pages that need no server and no network: open site/index.html
site: $(VENV)/.installed $(SITE)/.installed
	PYTHONPATH=$(CURDIR):$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])') \
		NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --strict --quiet
	@! grep -rlE '<(script|img|link)[^>]* (src|href)="https?:' site --include='*.html'
	@echo site/index.html

$(SITE)/.installed: docs/site/requirements.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --retries 1 -r $<
	@touch $@

# other energy meters are measured beside this one where they can be installed; without them the tables say why
bench: $(VENV)/.tested
	-@$(MAKE) --no-print-directory $(PEERS)/.installed
	$(BIN)/python benchmarks/run.py

$(PEERS)/.installed: benchmarks/peers.txt constraints.txt
	@rm -rf $(PEERS)
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --retries 1 -c constraints.txt -r benchmarks/peers.txt
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# constraints.txt pins what was tested; it holds names and versions only
$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

$(VENV)/.fleet: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fleet]'
	@touch $@

$(VENV)/.torch: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --retries 1 -c constraints.txt torch safetensors
	@touch $@

# a folder of its own each: their pins exclude each other's and ours
$(READERS)/.installed: tests/exports/consumers/readers.txt
	@rm -rf $(READERS)
	@$(PYTHON) -m venv $(READERS) && echo '*' >$(READERS)/.gitignore
	@$(READERS)/bin/python -m pip install -qq --disable-pip-version-check --retries 1 -r $<
	@touch $@

# pyenv has a python3.12 only for those who name it
$(FOCUS)/.installed: tests/exports/consumers/focus.txt
	@rm -rf $(FOCUS)
	@PYENV_VERSION=3.12 python3.12 -m venv $(FOCUS) && echo '*' >$(FOCUS)/.gitignore
	@$(FOCUS)/bin/python -m pip install -qq --disable-pip-version-check --retries 1 -r $<
	@touch $@

clean:
	rm -rf $(VENV) $(PEERS) $(SITE) $(READERS) $(FOCUS) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
