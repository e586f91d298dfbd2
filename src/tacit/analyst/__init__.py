"""What an analyst holds: tables, plans, streams and releases."""
