"""Arithmetic: the standard library and numpy, no files, no clock, no framework; one number or an
array everywhere."""
