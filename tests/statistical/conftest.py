"""Lets the tests of this folder import the populations they share, and run optimised code."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def _optimised(optimised):
    """Simulate whole studies with faster code, which is worth its compilation here."""
