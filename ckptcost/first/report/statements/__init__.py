"""Statements from what was found: modelled, simulated, measured."""
