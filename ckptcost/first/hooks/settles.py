"""From marks to questions for whoever finds out when files are safe: which window, which path,
written from when until when."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

_MOST = 10_000
"""windows that are remembered"""


class Settles:
    """Sees every mark; asks `settle(window, [path], since_ns=, written_ns=, rank=)` where a mark
    says that nobody else will tell.

    >>> Settles(lambda *what, **more: print(what, more)).see(
    ...     0, "returned", "step 1", 9, 0, "/ckpt/1", True
    ... )
    ('step 1', [PosixPath('/ckpt/1')]) {'since_ns': 9, 'written_ns': 9, 'rank': 0}
    """

    def __init__(self, settle: Callable[..., object] | None) -> None:
        self._settle = settle
        self._since: OrderedDict[tuple[int, str], tuple[int, int | None]] = OrderedDict()
        """by who and window: begin, and written"""

    def see(
        self, who: int, name: str, window: str, t_ns: int, rank: int, path: object, wanted: object
    ) -> None:
        if self._settle is None:
            return
        key = who, window
        if name == "begin":
            self._since[key] = t_ns, None
            self._since.move_to_end(key)
            if len(self._since) > _MOST:
                self._since.popitem(last=False)
            return
        if name == "written" and key in self._since:
            self._since[key] = self._since[key][0], t_ns
        if wanted is not True or not isinstance(path, str):
            return
        if not os.path.isabs(path) or "\0" in path:
            return
        since_ns, written_ns = self._since.pop(key, (t_ns, None))
        self._settle(
            window,
            [Path(path)],
            since_ns=since_ns,
            written_ns=t_ns if written_ns is None else written_ns,
            rank=rank,
        )
