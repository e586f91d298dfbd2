"""What is declared about a table: its columns, its people, and how its source is written."""
