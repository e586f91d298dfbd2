"""Ratios measured within one run: ours against a peer or a limit."""
