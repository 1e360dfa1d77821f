"""Other systems, published and not ours, behind the same contract."""
