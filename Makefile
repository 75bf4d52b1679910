# make test PYTHON=python3.12 has an environment of its own, .venv-python3.12.
PYTHON ?= python3
VENV := .venv$(patsubst %,-%,$(filter-out python3,$(notdir $(PYTHON))))
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
JAVA_CLASSES := $(VENV)/spark.jsa
BENCH := .venv-bench
SBOM := .venv-sbom
PEERS := $(BENCH)/.installed
NODE_PEERS := bench/node/node_modules/.installed

# Tests start hundreds of Python processes, which should not each compile the same modules again.
unexport PYTHONDONTWRITEBYTECODE

# Tests that must share a process have a group, such as all tests on the one Spark session.
# One process more than there are cores, because tests often wait for a disk or another process.
PARALLEL := --numprocesses=$(shell expr `getconf _NPROCESSORS_ONLN` + 1) --maxprocesses=4 --dist=loadgroup

# What proves most for its time while one works, without the tests that start many processes.
QUICK := tests/architecture tests/callbacks tests/cli tests/model tests/server tests/unit src/duequeue/contract
DEAR := cli/test_pipeline* cli/test_worker* callbacks/test_push_process* \
	$(patsubst %,server/test_%.py,crash openapi own_token stopping tls)

.PHONY: help install version choice downloads test test-quick mutants fire siege made check demo cluster-demo bench bench-quick bench-spark bench-service bench-retention bench-timers bench-callbacks sbom soak clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

install: $(INSTALLED)  ## Make .venv with everything needed to work on DueQueue

version: install  ## Show which Python everything here runs on
	@$(BIN)/python -c 'import sys; print("Python", sys.version)'

test: choice downloads $(JAVA_CLASSES)  ## Run the tests, on servers that they start; ONLY=redis or ONLY=cli runs a part of them
	$(BIN)/pytest $(PARALLEL) --only '$(ONLY)'

choice: install
	@$(BIN)/python -m tests.fixtures.choosing '$(ONLY)'

downloads: install
	@$(BIN)/python -m tests.fixtures.downloads

test-quick: install  ## Run in two minutes what needs no database server, with the contract on memory and SQLite
	$(BIN)/pytest $(PARALLEL) --serverless $(QUICK) $(patsubst %,--ignore-glob='*/%',$(DEAR))

mutants: downloads $(JAVA_CLASSES)  ## Prove that tests find each seeded bug, or those with ONLY=words in their names
	$(BIN)/python -m tests.mutants $(ONLY)

fire: install  ## Break everything around DueQueue for MINUTES=30, and prove that no promise breaks
	$(BIN)/python -m tests.fire --minutes $(or $(MINUTES),30)

siege: install  ## Attack a server for two minutes, and measure what that costs other clients
	@$(BIN)/python -m tests.server.siege

made: install  ## Write the blocking modules that are made from their awaiting twins
	@$(BIN)/python -m tools.made

check: install  ## Check format, lint, types (of the documentation too), layers and made modules
	@$(BIN)/python -m tools.made --check
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pytest --quiet tests/docs/test_types.py
	$(BIN)/lint-imports --no-logo

demo: install  ## Watch a queue at work, then read the report on it
	$(BIN)/python examples/demo.py

cluster-demo: install  ## Watch a Spark cluster take a million messages from end to end
	$(BIN)/python -m examples.cluster

bench: $(PEERS) $(NODE_PEERS)  ## Measure ours, the peers and the limits side by side
	$(BENCH)/bin/python -m bench

bench-quick: $(PEERS) $(NODE_PEERS)  ## Measure the most important of these
	$(BENCH)/bin/python -m bench --quick

bench-spark: $(PEERS)  ## Measure the connector for Spark beside Spark's own JDBC and COPY
	$(BENCH)/bin/python -m bench spark --rounds 3

bench-service: install  ## Measure the server beside the library and beside an empty route
	$(BIN)/python -m bench service

bench-retention: $(PEERS)  ## Take a week of messages from offer to report
	$(BENCH)/bin/python -m bench.retention

bench-timers: install  ## Measure the timers from a thousand to a million items
	$(BIN)/python -m bench.timers

bench-callbacks: install  ## Measure callbacks beside the bare client, their lateness, and slow endpoints
	$(BIN)/python -m bench.callbacks

soak: install  ## Let mixed traffic run for MINUTES=60 on each store, and see whether anything grows
	$(BIN)/python -m bench.soak --minutes $(or $(MINUTES),60)

sbom: install  ## Write dist/duequeue.cdx.json, the list of all packages that DueQueue installs
	rm -rf $(SBOM) && $(PYTHON) -m venv --without-pip $(SBOM)
	$(BIN)/python -m pip --python $(SBOM)/bin/python install --quiet --disable-pip-version-check \
		'.[callbacks,contract,http,mysql,otel,postgres,redis,server,spark]' --constraint constraints.txt
	test -x $(SBOM)-maker/bin/python || $(PYTHON) -m venv $(SBOM)-maker
	$(SBOM)-maker/bin/python -m pip install --quiet --disable-pip-version-check \
		cyclonedx-bom --constraint constraints.txt
	mkdir -p dist
	$(SBOM)-maker/bin/cyclonedx-py environment $(SBOM)/bin/python --pyproject pyproject.toml \
		--mc-type library --short-PURLs --output-reproducible --output-file dist/duequeue.cdx.json

clean:  ## Remove everything that the other targets made
	rm -rf .venv .venv-* bench/node/node_modules bench/report build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@echo 'Making $(VENV): about 900 MB of packages, half of it Spark; 2.5 GB on the disk; some minutes, the first time'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[postgres,dev]' --constraint constraints.txt
	touch $@

$(JAVA_CLASSES): $(INSTALLED)
	@echo 'Archiving the Java classes of Spark: about a minute, the first time'
	$(BIN)/python -m tests.fixtures.java_classes

$(PEERS): pyproject.toml constraints.txt bench/requirements.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[postgres,test]' --requirement bench/requirements.txt --constraint constraints.txt
	touch $@

# Node.js comes from a wheel too.
$(NODE_PEERS): $(PEERS) bench/node/package.json
	PATH="$(CURDIR)/$(BENCH)/bin:$$PATH" npm install --prefix bench/node \
		--no-package-lock --no-audit --no-fund --loglevel=error
	touch $@
