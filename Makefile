# The only list of commands. Each target sets up what it needs; a second call re-uses it.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run paper coids studies models compare peers docs demo bench test check golden golden-values test-slow lock clean

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
	$(BIN)/coco reproduce --quick --resume --out runs/quick

paper: setup ## The whole reproduction: ten seeds, the paper's grid; takes hours, can be resumed
	$(BIN)/coco reproduce --resume --out runs/paper

coids: setup ## CoIDS and its yardsticks in eight environments, ten seeds; takes hours, can be resumed
	$(BIN)/coco reproduce --resume --env mixture --env partial --env lmm --env lmm-misspecified --env stress \
	  --policy coids --policy oracle-plan --policy oracle-ts --policy ind-ts --seeds 10 --out runs/coids

studies: setup ## Ten arms, yes/no rewards, features with and without gaps; five seeds; can be resumed
	$(BIN)/coco reproduce --resume --env studies --policy coids --policy oracle-ts --policy ind-ts --seeds 5 \
	  --jobs 1 --out runs/studies

models: setup ## The mixture in the paper's environments, against the log-density; ten seeds; can be resumed
	$(BIN)/coco reproduce --resume --env mixture --env partial --env lmm --env lmm-misspecified --policy coids \
	  --model mixture --seeds 10 --out runs/mixture
	$(BIN)/python benchmarks/two_models.py results/coids runs/mixture

compare: setup ## Every system of Table 1 beside ours in all environments; ten seeds; takes hours, can be resumed
	$(BIN)/coco compare --resume --out runs/compare

peers: setup ## MABWiser and bayesianbandits in the environments of `coco compare`; ten seeds; can be resumed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/peers.txt
	@test -f runs/compare/config.json || { echo "Expected a run in runs/compare; got none. Run $(BIN)/coco compare --out runs/compare first."; exit 1; }
	$(BIN)/python benchmarks/peers/run.py --seeds 10 --out runs/compare/peers.json

docs: setup ## Rebuild the figures and generated pages from the records in results and benchmarks
	$(BIN)/coco report results/coids --beside results/paper --markdown docs/reproduction.md
	$(BIN)/coco report results/studies --markdown docs/studies.md
	$(BIN)/python benchmarks/two_models.py results/coids results/mixture > docs/models.md
	$(BIN)/coco compare --show --out results/compare-mended --beside results/compare --page docs/compare.md
	if [ -f benchmarks/results.json ]; then $(BIN)/python benchmarks/page.py; fi
	$(BIN)/python docs/make_results.py

demo: setup ## The diet example through Study, and why plan 1 comes first
	$(BIN)/coco demo

bench: setup ## Measure speed, memory and growth against a literal reading of the paper; one to two hours
	$(BIN)/coco bench

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

lock: setup ## Resolve the pinned versions and hashes anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml requirements/tools.in --extra experiments --extra test --extra quality --universal \
	  --python-version 3.11 --fork-strategy fewest --generate-hashes --no-annotate --no-header --upgrade \
	  --quiet --output-file requirements/dev.txt
	$(BIN)/uv pip compile pyproject.toml --constraint requirements/dev.txt --extra peers --extra experiments --universal \
	  --python-version 3.11 --fork-strategy fewest --generate-hashes --no-annotate --no-header --upgrade \
	  --quiet --output-file requirements/peers.txt

clean: ## Remove the environment, the quick run and all caches
	rm -rf runs/quick .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
