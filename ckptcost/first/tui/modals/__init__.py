"""Dialogs over a screen."""
