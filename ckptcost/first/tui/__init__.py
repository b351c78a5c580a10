"""The screen. It knows how to show and how to ask, and not what a checkpoint costs: sums and words
come from `views`."""
