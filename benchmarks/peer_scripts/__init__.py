"""Scripts that answer the same questions with other libraries, each in its own environment."""
