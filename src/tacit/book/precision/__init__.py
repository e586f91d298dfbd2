"""What `tacit.book.accuracy` and `tacit.book.half_gap` are made of."""
