"""Studies on simulated populations, one flat record per interaction."""
