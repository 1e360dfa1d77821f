"""Golden behaviour: scenarios as data, drivers that play them, and the comparison of two commits.

- `scenarios.py` lists studies, `runs.py` lists simulated and resumed runs: plain data, no API.
- `drivers/` plays them, one module per API of the package.
- `playing.py` records what a study answers to every call of a scenario.
- `pages.py` regenerates the pages and figures of a tree.
- `worker.py` records everything of one tree; `compare.py` compares two trees (`make golden`).
- `record.py` writes `values.json` (`make golden-values`), which `test_golden_values.py` reads.
"""
