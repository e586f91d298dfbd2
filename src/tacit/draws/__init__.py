"""Exact draws from the laws that the book needs: coins in, whole numbers out."""
