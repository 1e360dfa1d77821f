"""Sequential Monte Carlo over whitened parameters; knows nothing of bandits."""
