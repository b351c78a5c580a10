# Two commands set everything up on a machine with python3 (3.11 or newer) and a C compiler:
#   make demo    a virtual environment, the package, and the report of a built-in scenario
#   make test    the same environment with the test tools, and every test
# make check is what has to pass before a commit: lint, types, import contracts, tests.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PEERS  := .venv-peers
READERS := .consumers
# the validator of FOCUS needs Python 3.12 or newer
PYTHON312 ?= $(firstword $(wildcard $(HOME)/.pyenv/versions/3.12.*/bin/python) $(shell command -v python3.12 python3.13 2>/dev/null))

.PHONY: demo fleet quick test check lint types contracts tests tests-alone tests-together torch consumers fuzz unprivileged fmt golden bench schema screenshots site clean

demo: $(VENV)/.installed
	@$(BIN)/ckptcost model
	@if [ -t 1 ]; then printf '\nNext: %s opens the screen; docs/quickstart.md\n' '$(BIN)/ckptcost'; fi

test: $(VENV)/.tested
	@$(MAKE) --no-print-directory tests

check: $(VENV)/.tested lint types contracts tests

# formulas, catalogue, and what every question prints: no process is started, nothing is waited for, and no law is tried on
# a great many samples
QUICK := tests/first/core tests/first/catalog tests/first/claims tests/first/cases tests/first/present tests/first/golden
quick: $(VENV)/.tested
	$(BIN)/python -m pytest -n 2 -q -m "not sampled" $(QUICK)

# what `ckptcost fleet` needs besides: pandas, pyarrow and Dask, some 300 MB
fleet: $(VENV)/.fleet

# CI has two processors, and a third of the time of a test is waiting: three workers are a fifth quicker than two
# what is held against a known rate runs with nothing beside it: browsers, servers and compilers of other tests take its processor
ALONE := tests/first/jobs/test_probe_throttled.py

tests: tests-alone tests-together

tests-alone:
	$(BIN)/python -m pytest -q $(ALONE)

tests-together:
	$(BIN)/python -m pytest -n 3 -q $(addprefix --ignore=,$(ALONE))

# the tests that use PyTorch skip without it; it takes about 1 GB, or several where the registry gives the build for GPUs
torch: $(VENV)/.torch

# the programs that read our exports, each in a place of its own; a test skips with a reason where its reader is not there
consumers:
	-@$(MAKE) --no-print-directory $(READERS)/py/.installed
	-@$(MAKE) --no-print-directory $(READERS)/focus/.installed
	-@$(MAKE) --no-print-directory $(READERS)/node/.installed

$(READERS)/py/.installed: tests/first/exports/consumers/python.txt
	$(PYTHON) -m venv $(READERS)/py
	$(READERS)/py/bin/python -m pip install --quiet --disable-pip-version-check --retries 1 -r $<
	@touch $@

$(READERS)/focus/.installed: tests/first/exports/consumers/focus.txt
	@test -n "$(PYTHON312)" || { echo "no Python 3.12: name one with PYTHON312=..."; exit 1; }
	$(PYTHON312) -m venv $(READERS)/focus
	$(READERS)/focus/bin/python -m pip install --quiet --disable-pip-version-check --retries 1 -r $<
	@touch $@

$(READERS)/node/.installed: tests/first/exports/consumers/package.json
	@mkdir -p $(READERS)/node && cp $< $(READERS)/node/
	cd $(READERS)/node && npm install --no-audit --no-fund --no-package-lock --silent
	@touch $@

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

# accepted inputs of every reader, changed under right checksums: no defect, no hang, no escape to a terminal
MINUTES ?= 1
fuzz: $(VENV)/.tested
	$(BIN)/python tests/first/fuzz/fuzz.py --minutes $(MINUTES) --seed $(or $(SEED),0)

# as somebody whom permissions hold back: root without its rights, since a checkout may lie where nobody else may look
RIGHTLESS := setpriv --bounding-set=-all --inh-caps=-all
PLAIN := tests/first/runs tests/first/fleet/test_store.py tests/first/cli/test_output.py tests/first/cli/test_export_cli.py tests/first/cli/test_report_run.py \
	tests/first/cli/test_measure_cli.py tests/first/exports/test_metrics_server.py tests/first/faults
unprivileged: $(VENV)/.tested
	$$(test "$$(id -u)" = 0 && echo $(RIGHTLESS)) $(BIN)/python -m pytest -n 2 -q -p no:cacheprovider $(PLAIN)

golden: $(VENV)/.tested
	$(BIN)/python -m pytest tests/first/golden -q --update-golden

schema: $(VENV)/.tested
	$(BIN)/python -m ckptcost.first.report.schema_file

# needs Chromium, which turns what the screen draws into pictures
screenshots: $(VENV)/.tested
	$(BIN)/python docs/screenshots/take.py

# the documentation as a folder of pages that need no server and no network: open site/index.html
SITE := .site
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

clean:
	rm -rf $(VENV) $(PEERS) $(READERS) $(SITE) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
