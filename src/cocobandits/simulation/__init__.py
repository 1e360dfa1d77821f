"""Studies on simulated populations, one flat record per interaction."""

from cocobandits.simulation.loop import InteractionRecord, simulate

__all__ = ["InteractionRecord", "simulate"]
