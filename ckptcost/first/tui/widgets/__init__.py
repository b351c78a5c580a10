"""Widgets: each takes finished data by `show` and speaks by messages."""
