"""The parts of `bench.py`, one file per question."""
