"""How SmallDB is drawn exactly: by slack on an order, by enumeration, by a sub-range."""
