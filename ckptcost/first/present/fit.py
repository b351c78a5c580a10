"""Words on one line of a given width: what matters stays, where it lies goes first."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w.…])(?:~|\.{1,2})?/[^\s:;,'\"()]*[^\s:;,.'\"()/]")
_LEAST = 8
"""a path shorter than that gains nothing by losing its folders"""


def fit(text: str, width: int) -> str:
    """Folders of paths go, the longest path's first, until it fits; what is still too long is for
    who draws it.

    >>> fit("/mnt/lustre/job-17/step-2000.pt: no space is left", 40)
    '…/step-2000.pt: no space is left'
    >>> fit("/mnt/lustre/job-17/step-2000.pt: no space is left", 50)
    '/mnt/lustre/job-17/step-2000.pt: no space is left'
    """
    for path in sorted(_PATH.findall(text), key=len, reverse=True):
        if len(text) <= width:
            break
        if len(path) > _LEAST and "/" in path[1:]:
            text = text.replace(path, f"…/{path.rsplit('/', 1)[1]}")
    return text
