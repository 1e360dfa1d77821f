"""From the particles' beliefs about a user to probabilities over arms."""
