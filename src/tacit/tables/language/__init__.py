"""From the text of a question to its tree, and what is promised about it."""
