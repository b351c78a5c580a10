"""Marks from inside a training job: a context manager, training steps, and one line each for the
frameworks."""
