"""What nodes without a file would have added: the windows they lack times the mean of the nodes
that are there, with its uncertainty.

missing      sum(L) * mean                       L: windows that a missing node lacks; mean: of the
present nodes' means variance     s^2 * (sum(L^2) + sum(L)^2 / n)     s: from node to node; the
first term is the missing nodes' own, the second the mean's
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from ckptcost.first.core.estimates import Estimate, about, absent


def missing_share(per_node: ArrayLike, lacking: ArrayLike) -> Estimate:
    """In the unit of `per_node`: a present node's mean amount a window. `lacking`: how many windows
    each missing node lacks.

    Nodes whose amount is NaN say nothing and are left out. The interval is Student's; amounts that
    are never negative are not missing a negative amount. NO_NODES, ONE_NODE: why there is no value,
    or no interval.

    >>> [round(part, 1) for part in missing_share([9.0, 10.0, 11.0], [100.0])[:3]]
    [1000.0, 503.2, 1496.8]
    """
    seen, lacks = np.asarray(per_node, dtype=np.float64), np.asarray(lacking, dtype=np.float64)
    if not (np.isfinite(lacks) & (lacks >= 0)).all() or np.isinf(seen).any():
        raise ValueError("windows that are lacking are a count, and an amount is finite or NaN")
    seen = seen[~np.isnan(seen)]
    n, windows = len(seen), float(lacks.sum())
    if not n:
        return absent("NO_NODES")
    if not windows:
        return Estimate(0.0, 0.0, 0.0, 0.0, n)
    value = windows * float(seen.mean())
    if n < 2:
        return Estimate(value, n=n, why="ONE_NODE")
    stderr = float(seen.std(ddof=1)) * sqrt(float((lacks**2).sum()) + windows**2 / n)
    found = about(value, stderr, n - 1, n)
    return found._replace(low=max(found.low or 0.0, 0.0)) if seen.min() >= 0 else found
