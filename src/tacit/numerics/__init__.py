"""Numbers with proved errors.  They know nothing of privacy; book and auditor share them."""
