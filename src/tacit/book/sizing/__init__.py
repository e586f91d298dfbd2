"""How large, how accurate and how slow a SmallDB release is: proved sizes and errors."""
