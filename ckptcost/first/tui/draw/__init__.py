"""Pictures as characters: pure functions from numbers to glyphs. No screen toolkit here."""
