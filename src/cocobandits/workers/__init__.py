"""Processes that work for a study."""
