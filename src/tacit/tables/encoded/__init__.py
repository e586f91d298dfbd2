"""Rows as narrow codes, in memory or in mapped files."""
