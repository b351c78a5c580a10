"""`ckptcost runs` without a verb lists them; its --help names the verbs."""

from __future__ import annotations

from ckptcost.cli.runs_list_ import arguments, run

__all__ = ["EPILOG", "arguments", "run"]

EPILOG = """\
verbs, each with its own --help:
  ckptcost runs list                   # all, the latest first; the default
  ckptcost runs show last
  ckptcost runs pack last -o last-run
Kept in $CKPTCOST_RUNS, else $XDG_DATA_HOME/ckptcost/runs, else
~/.local/share/ckptcost/runs.
To remove a run, remove its folder.
"""
