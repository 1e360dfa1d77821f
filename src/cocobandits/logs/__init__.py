"""The log of a study: tables, files, and estimates of what other choices would have earned."""
