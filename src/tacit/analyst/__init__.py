"""What an analyst holds: tables, streams, plans and releases."""
