"""The theorems and algorithms of the book: pure, no input or output.

Dwork & Roth, *The Algorithmic Foundations of Differential Privacy* (2014), sections 3.5.2,
3.6, 3.6.1, 3.6.3 and 4.1, as corrected in ``docs/errata.md``.
"""
