"""Gaussian hierarchies in closed form: linear mixed models of arm means."""
