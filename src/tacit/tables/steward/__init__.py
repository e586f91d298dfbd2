"""For the steward alone: a first schema for a source, and what in it does not fit."""
