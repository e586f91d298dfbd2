"""What `tacit.book.composition` is made of: Theorem 3.20, optimal composition, zCDP."""
