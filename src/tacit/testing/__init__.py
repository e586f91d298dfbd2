"""Contract suites for what can be added to Tacit: pytest classes to subclass in your own tests."""
