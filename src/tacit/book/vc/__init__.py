"""The search for shattered sets behind `tacit.book.shattering`."""
