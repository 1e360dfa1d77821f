"""The paper's experiments: run, store, measure, draw, report."""
