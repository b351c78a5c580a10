"""Fleets that never were, with their truth."""
