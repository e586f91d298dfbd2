"""Contract suites that other packages can subclass: engines, ledgers and releases."""
