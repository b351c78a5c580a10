"""Domain objects to cells, labels and words; the one place for wording and human units. No screen
toolkit here."""
