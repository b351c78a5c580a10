"""Files to figures: where models/ and data/ are, what a file may say, and who says so."""
