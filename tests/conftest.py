"""Tests see what ships and nothing of the user's own."""

import os

# before the catalogue is imported, which looks for the user's folder once
os.environ["CKPTCOST_USER"] = os.devnull
for name in ("CKPTCOST_HOME", "CKPTCOST_DEBUG"):
    os.environ.pop(name, None)
