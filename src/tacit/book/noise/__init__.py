"""Exact random draws: what `tacit.book.coins` is made of (docs/exactness.md)."""
