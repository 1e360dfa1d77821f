"""Policies: users and their rewards go in, probabilities of arms come out."""
