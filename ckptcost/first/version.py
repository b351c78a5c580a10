"""The version, on its own so that everything may import it."""

from ckptcost import __version__

__all__ = ["__version__"]
