# Everything a developer or a user types. A fresh machine needs python3 (3.11 or newer), pip and make.
# `make` alone starts the sandbox; `make test` and `make check` are what CI runs.
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin
STAMP := $(VENV)/.built
SOURCES := scheduler sandbox lab tests tools conftest.py
UV := .cache/uv/bin/uv
# The extras but lab, whose package is of this repository.
EXTRAS := $(foreach each,arrow plot sweep otel dra mcp site dev,--extra $(each))

.PHONY: up venv test test-slow test-pages test-page page-bench page-check page-fmt test-install wheel release audit check proof fmt fmt-check lint types imports bench bench-compare soak handover docs docs-check site lock licences performance worlds

up: $(STAMP)  ## start a cluster on this machine; ARGS='--nodes 50 --empty'
	@$(BIN)/moorage up $(ARGS)

venv: $(STAMP)  ## build .venv with the locked dependencies; PYTHON=python3.13 VENV=.cache/python3.13 one beside it

$(STAMP): requirements.lock pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c "import sys; sys.version_info >= (3, 11) or sys.exit('moorage needs Python 3.11 or newer: make PYTHON=python3.12')"
	$(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements.lock  # the lock names all: nothing is to be resolved
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./lab
	$(BIN)/python -m compileall -q scheduler/src sandbox/src lab/src && touch $@  # or each start would compile, where Python may not keep it

test: $(STAMP)  ## run the tests; ARGS='scheduler/tests/engine -k ties'
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

test-slow: $(STAMP)  ## run the tests with a sandbox, kubectl or a large cluster
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow -rs $(ARGS)

test-pages: $(STAMP)  ## run the commands of every page of the documents
	$(BIN)/python -m pytest -m pages -rs tests/pages $(ARGS)

test-page: $(STAMP)  ## the page in a real browser, which is fetched once
	$(BIN)/python -m pytest -n 0 -m browser -rs tests/browser --ignore tests/browser/test_scripts.py $(ARGS)

page-bench: $(STAMP)  ## how long the first picture takes in a real browser, also with 5000 nodes and 50,000 pods; some minutes
	PAGE_LARGE=1 $(BIN)/python -m pytest -n 0 -m browser -rs tests/browser/test_first_picture.py $(ARGS)

page-check: $(STAMP)  ## the types, form and faults of the page's scripts; tsc and Biome are fetched once
	$(BIN)/python -m pytest -n 0 -m browser -rs tests/browser/test_scripts.py $(ARGS)

page-fmt: $(STAMP)  ## write the page's scripts and styles in their form
	$(BIN)/python -m tests.browser.scripts

test-install: $(STAMP)  ## build wheel and sdist, install each into a clean environment, and use it there
	$(BIN)/python -m pytest -m install -rs tests/test_install.py tests/test_recipes.py tests/workflows tests/cli/mcp $(ARGS)

proof: $(STAMP)  ## the first hour of a newcomer, in a clean environment; needs a package index; some minutes
	$(BIN)/python -m tests.proof.first_hour $(ARGS)

wheel: $(STAMP)  ## write the wheel of each distribution, and the sdist, to dist
	$(BIN)/hatchling build -d dist
	for part in scheduler sandbox lab; do (cd $$part && $(CURDIR)/$(BIN)/hatchling build -t wheel -d $(CURDIR)/dist) || exit 1; done

release: $(STAMP)  ## cut a release here, without upload: VERSION=0.2.0 [DATE=2026-11-30]
	$(BIN)/python -m tools.release.cut "$(VERSION)" "$(or $(DATE),$(shell date -u +%F))"

check: fmt-check lint types imports docs-check test test-slow  ## everything CI asks for, tests included once

fmt: $(STAMP)  ## format the code
	$(BIN)/ruff format $(SOURCES) && $(BIN)/ruff check --fix-only $(SOURCES)

fmt-check: $(STAMP)
	$(BIN)/ruff format --check $(SOURCES)

lint: $(STAMP)
	$(BIN)/ruff check $(SOURCES)

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

bench: $(STAMP)  ## measure; ARGS='--nodes 500 --mode server'
	$(BIN)/moorage bench basic $(ARGS)

bench-compare: $(STAMP)  ## measure a revision and the working tree in turn; REF=main ROUNDS=5 ARGS='basic --nodes 500'
	$(BIN)/python -m tests.bench_compare $(if $(ROUNDS),--rounds $(ROUNDS)) $(REF) $(ARGS)

soak: $(STAMP)  ## 10000 pods on 1000 nodes that come and go, two schedulers; ARGS='--nodes 50 --pods 500'
	$(BIN)/moorage bench soak $(ARGS)

handover: $(STAMP)  ## end and stop replicas at random on 1000 nodes; ARGS='--rounds 200 --lease 6'
	$(BIN)/moorage bench handover $(ARGS)

audit: $(STAMP)  ## ask for known vulnerabilities of every dependency; ARGS=--record after make lock
	$(BIN)/python -m tests.dependency_audit $(ARGS)

worlds: $(STAMP)  ## play the worlds that docs/how-to/worlds.md tells of; 10 minutes; ARGS='--worlds 10000'
	$(BIN)/moorage fault-sim company --worlds 500 --jobs 2 $(ARGS) -o json >docs/worlds.json || test $$? = 1
	$(BIN)/python -m tools.pages.generate

performance: $(STAMP)  ## measure what docs/performance.md tells, on an idle machine; 15 minutes
	$(BIN)/python -m tools.pages.performance_run && $(BIN)/python -m tools.pages.generate

licences: $(STAMP)  ## record the licences of all locked packages, after make lock
	$(BIN)/python -m tools.release.packages

docs: $(STAMP)  ## write the generated reference pages
	$(BIN)/python -m tools.pages.generate && $(BIN)/python -m tools.pages.conformance_table

site: $(STAMP)  ## build the documents as a site in dist/site, strictly, without network; VERSIONS='0.1.0 0.2.0' are linked
	MOORAGE_SITE_VERSIONS="$(VERSIONS)" $(BIN)/python -m tools.site.build $(ARGS)

docs-check: $(STAMP)
	$(BIN)/python -m tools.pages.generate --check

lock: $(UV)  ## resolve every dependency anew for all platforms and Pythons
	$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes $(EXTRAS) --no-emit-index-url --no-emit-find-links --no-emit-package pywin32 --no-annotate --custom-compile-command 'make lock' -o requirements.lock pyproject.toml
	$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command 'make lock' -c requirements.lock --extra dra --extra otel -o deploy/requirements.lock scheduler/pyproject.toml
	echo hatchling | $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command 'make lock' -c requirements.lock -o deploy/build.lock -

$(UV):
	$(PYTHON) -m venv .cache/uv && .cache/uv/bin/python -m pip install -q --disable-pip-version-check uv
