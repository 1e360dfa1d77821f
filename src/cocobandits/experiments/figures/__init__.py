"""The figures of all pages: one decorated function each, drawn from results alone.

A figure of your own is one function with `@figure(...)`, in a module that is imported before a page
is written. The decorator registers it, and the page shows it.
"""

# In the order of pages.
from cocobandits.experiments.figures import regret, particles, population, comparison  # noqa: F401, I001
from cocobandits.experiments.figures.drawing import draw as draw, figure as figure
