"""Simulated populations: the only code that knows the truth."""
