"""Meters: hardware to numbers. One file each; a meter only reads, the caller owns the clock and the
arithmetic is in core."""
