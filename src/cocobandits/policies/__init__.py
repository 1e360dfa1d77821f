"""Policies: told who enrolled and whose statistics changed, they give probabilities over arms."""
