# make demo        a look at a result, on a made-up grid
# make test        everything that continuous integration runs
# make test-fast   the same without real search servers
# make test-all    the same, and the matrix of versions of search servers
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SPELLED := esjobs fitters dashboards scheduler docs benchmarks README.md CHANGELOG.md CONTRIBUTING.md
PYTEST := -n 2 --dist loadgroup --durations-file build/durations.txt

.PHONY: demo test test-fast test-all lint docs clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "esjobs needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "Python cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/installed: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[web]'
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

demo: $(VENV)/installed
	$(BIN)/esjobs demo
	@echo "open it: $(BIN)/esjobs --store duckdb:demo/demo.duckdb web"

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell -D - -D .ci/words.txt $(SPELLED)

test: lint
	$(BIN)/python -m pytest $(PYTEST) -m 'not matrix'

test-fast: lint
	$(BIN)/python -m pytest $(PYTEST) -m 'not matrix and not server'

test-all: lint
	$(BIN)/python -m pytest $(PYTEST)

docs: $(VENV)/installed-test
	$(BIN)/python -m docs.generate

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
