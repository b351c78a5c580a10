"""Arithmetic that knows unknown, endless and tiny: shared by every formula of the plan."""

from __future__ import annotations

from typing import Any

import numpy as np


def orelse(x: Any, y: Any) -> Any:
    """x where it is known, else y."""
    return np.where(np.isnan(x), y, x)


def times(x: Any, y: Any) -> Any:
    """x*y where nothing of an endless or unknown thing is nothing: 0*inf = 0*NaN = 0."""
    return np.where((x == 0) | (y == 0), 0.0, x * y)


def exprel(x: Any) -> Any:
    """(exp(x)-1)/x, and 1 at 0: the mean of exp over [0, x]."""
    small = np.abs(x) < 1e-5
    return np.where(small, 1.0 + x / 2 + x * x / 6, np.expm1(x) / np.where(small, 1.0, x))


def log1prel(x: Any) -> Any:
    """log(1+x)/x, and 1 at 0."""
    small = np.abs(x) < 1e-5
    return np.where(small, 1.0 - x / 2 + x * x / 3, np.log1p(x) / np.where(small, 1.0, x))
