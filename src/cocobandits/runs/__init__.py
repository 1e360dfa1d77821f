"""Runs as sets of cells: computed in parallel, stored in files, read without simulating."""
