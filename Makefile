# The only list of commands. Each target sets up what it needs; a second call re-uses it.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run paper coids studies models compare peers docs demo bench versions test check golden golden-values test-slow lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

setup: $(READY) ## Create .venv with the pinned packages; leaves .venv/bin/coco

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Expected Python 3.11 or newer; got $$($(PYTHON) --version). Set PYTHON=/path/to/python3.11."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(READY)

run: setup ## Reproduce the paper in small: four environments, four seeds, an answer and a page
	$(BIN)/coco reproduce --quick --out runs/quick

paper: setup ## The whole reproduction: ten seeds, the paper's grid; takes hours, can be resumed
	$(BIN)/coco reproduce --out runs/paper

coids: setup ## Add CoIDS and reference policies in four more environments to that; ten seeds; takes hours, can be resumed
	$(BIN)/coco reproduce --env mixture --env partial --env lmm --env lmm-misspecified --env stress \
	  --policy coids --policy oracle-plan --policy oracle-ts --policy ind-ts --seeds 10 --out runs/paper

studies: setup ## Ten arms, yes/no rewards, features with and without gaps; five seeds; can be resumed
	$(BIN)/coco reproduce --env studies --policy coids --policy oracle-ts --policy ind-ts --seeds 5 \
	  --jobs 1 --out runs/studies

models: setup ## CoIDS with the log-density in the paper's environments, to compare with its mixture; ten seeds; can be resumed
	$(BIN)/coco reproduce --env mixture --env partial --env lmm --env lmm-misspecified --policy coids-log-density \
	  --seeds 10 --out runs/models

compare: setup ## Every system of Table 1 and ours in all environments; ten seeds; takes hours, can be resumed
	$(BIN)/coco compare --out runs/compare

peers: setup ## MABWiser and bayesianbandits in the environments of `coco compare`; ten seeds; can be resumed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/peers.txt
	$(BIN)/python benchmarks/peers/run.py --seeds 10 --out runs/compare

docs: setup ## Rebuild figures, pages and tables from the results and the code
	$(BIN)/python docs/make_tables.py
	$(BIN)/python -m cocobandits.experiments.report
	$(BIN)/python benchmarks/page.py

demo: setup ## The diet example through Study, and why plan 1 comes first
	$(BIN)/coco demo

bench: setup ## Measure speed, memory and growth; one to two hours, less with ONLY=words or QUICK=1
	$(BIN)/pytest -o addopts= --benchmark-only benchmarks $(if $(QUICK),--quick,--benchmark-json benchmarks/results.json) $(if $(ONLY),-k "$(ONLY)")
	$(if $(QUICK),,$(BIN)/python benchmarks/page.py)

versions: setup ## Compare the processor time of a warm run with another commit: BASE=HEAD~1; its regret with SEEDS=10
	PYTHONPATH=tests $(BIN)/python benchmarks/versions.py $(if $(BASE),--base $(BASE)) $(if $(SEEDS),--seeds $(SEEDS))

check: setup ## Format check, lint, types, layers contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check ## Everything a change has to pass
	$(BIN)/pytest

golden: setup ## Compare decisions, runs, pages and storage with another commit, bit for bit: BASE=HEAD~1
	PYTHONPATH=tests $(BIN)/python -m golden.compare $(if $(BASE),--base $(BASE))

golden-values: setup ## Write the values of policies in closed form that the tests expect
	PYTHONPATH=tests $(BIN)/python -m golden.record

test-slow: setup ## The long statistical tests, with their figures printed
	XLA_FLAGS= JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/pytest -m slow -rP

lock: setup ## Resolve the pinned versions and hashes again
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml requirements/tools.in --extra experiments --extra test --extra quality --universal \
	  --python-version 3.11 --fork-strategy fewest --generate-hashes --no-annotate --no-header --upgrade \
	  --quiet --output-file requirements/dev.txt
	$(BIN)/uv pip compile pyproject.toml --constraint requirements/dev.txt --extra peers --extra experiments --universal \
	  --python-version 3.11 --fork-strategy fewest --generate-hashes --no-annotate --no-header --upgrade \
	  --quiet --output-file requirements/peers.txt

clean: ## Remove the environment, the quick run and all caches
	rm -rf runs/quick .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
