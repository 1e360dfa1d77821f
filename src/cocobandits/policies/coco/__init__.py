"""Policies that learn the population with particles: CoIDS, and the paper's NPM-TS and GIDS."""
