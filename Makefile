# make demo        a look at a result, on a made-up grid
# make test        everything that continuous integration runs
# make test-fast   the same without real search servers
# make test-all    the same, and the matrix of versions of search servers
# make coverage    which lines and branches the tests without search servers reach
# make fuzz        attacks on everything that reads what others wrote, for five minutes
# make site        the documentation as pages with search, in build/site
# make note        the method as a paper to cite, in build/method.pdf
# make dist        what is published: wheel, sdist, bill of materials
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SPELLED := esjobs fitters dashboards scheduler docs benchmarks README.md CHANGELOG.md CONTRIBUTING.md
PYTEST := -n 2 --dist loadgroup --durations-file=build/durations.txt

.PHONY: demo test test-fast test-all coverage lint docs site note dist fuzz lock clean
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
	$(BIN)/codespell -L namd -D - -D .ci/words.txt $(SPELLED)

test: lint
	$(BIN)/python -m pytest $(PYTEST) -m 'not matrix'

test-fast: lint
	$(BIN)/python -m pytest $(PYTEST) -m 'not matrix and not server'

test-all: lint
	$(BIN)/python -m pytest $(PYTEST) --hypothesis-profile=thorough

# Lines and branches that the tests of `make test-fast` reach; compiled kernels count as not reached.
coverage: $(VENV)/installed-test
	$(BIN)/python -m pytest $(PYTEST) -m 'not matrix and not server' --cov --cov-report= || true
	$(BIN)/coverage report | tee build/coverage/report.txt | tail -1

docs: $(VENV)/installed-test
	$(BIN)/python -m docs.generate

note: $(VENV)/installed-test
	@mkdir -p build
	$(BIN)/python -m docs.note build/method.pdf
	@pdfinfo build/method.pdf | grep Pages

$(VENV)-release/installed: .ci/release.txt
	$(PYTHON) -m venv $(VENV)-release
	$(VENV)-release/bin/python -m pip install --quiet --disable-pip-version-check -r .ci/release.txt
	@touch $@

site: $(VENV)-release/installed
	NO_MKDOCS_2_WARNING=1 $(VENV)-release/bin/mkdocs build --quiet -f deploy/mkdocs.yml
	@echo "read it: python3 -m http.server --bind 127.0.0.1 --directory build/site"

# The bill is made of an environment that holds the wheel and what it needs, without extras or pip.
dist: $(VENV)-release/installed
	rm -rf dist build/product
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(VENV)-release/bin/python -m build --no-isolation
	$(PYTHON) -m venv --without-pip build/product
	$(VENV)-release/bin/uv pip install --quiet --python build/product/bin/python -c constraints.txt dist/*.whl
	$(VENV)-release/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
		--output-file dist/esjobs.cdx.json build/product/bin/python

# FUZZ="--minutes 60 --seed 7"
fuzz: $(VENV)/installed-test
	$(BIN)/python -m tests.fuzz $(FUZZ)

lock: $(VENV)-release/installed
	$(VENV)-release/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate -c constraints.txt -o deploy/requirements.lock \
		--extra aws --extra mail --extra opensearch --extra plots --extra web pyproject.toml

clean:
	rm -rf $(VENV) $(VENV)-release demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
