"""Populations that are given, not learned: the truth of an environment, or a flat prior."""
