"""Libraries that people install today, on the environments of this package."""
