"""What answers questions from encoded rows."""
