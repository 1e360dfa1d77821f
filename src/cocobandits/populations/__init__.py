"""Population models: pure mathematics of one population, without randomness or state."""
