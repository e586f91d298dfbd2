"""What an analyst works with: tables, streams, plans and releases."""
