"""Runs: the recorder, and the files it writes that survive whatever happens to it."""
