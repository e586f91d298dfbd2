"""Numbers with proved errors, which know nothing of privacy: book and auditor share them."""
