"""What a user or a framework gives as a label, a path or a number, made fit to be sent. Whatever it
is, nothing here raises."""

from __future__ import annotations

import os
from _thread import allocate_lock

LONGEST_LABEL = 200
_LONGEST_PATH = 3000
_counts: dict[str, int] = {}
_counting = allocate_lock()


def label_of(given: object) -> str:
    """Printable and short.

    >>> label_of("step\\n1000"), label_of(7), label_of("")
    ('step?1000', '7', 'save')
    """
    try:
        text = given if type(given) is str else str(given)
        text = str(text[:LONGEST_LABEL])
        return (
            text
            if text.isprintable() and text
            else "".join(sign if sign.isprintable() else "?" for sign in text) or "save"
        )
    except Exception:
        return type(given).__name__[:LONGEST_LABEL] or "save"  # somebody's __str__


def numbered_label(label: str) -> str:
    """The label with a number: how often it was used in this process."""
    if not _counting.acquire(timeout=1.0):
        return label
    try:
        _counts[label] = count = _counts.get(label, 0) + 1
    finally:
        _counting.release()
    return f"{label} {count}"


def path_of(given: object) -> str:
    """An absolute path where it is one of this machine's, an address as it is; empty where it
    cannot be known.

    >>> path_of("/ckpt/../ckpt/step 1"), path_of("s3://bucket/step 1"), path_of(None)
    ('/ckpt/step 1', 's3://bucket/step 1', '')
    """
    try:
        if given is None or isinstance(given, int):
            return ""
        if not isinstance(given, (str, bytes, os.PathLike)):
            given = getattr(given, "name", None)  # an open file
            if not isinstance(given, (str, bytes)):
                return ""
        text = os.fsdecode(given)
        if not text or len(text) > _LONGEST_PATH or "\0" in text:
            return ""
        if "://" in text:
            return (
                text
                if not text.startswith("file://")
                else os.path.abspath(text.removeprefix("file://"))
            )
        return os.path.abspath(text)
    except Exception:
        return ""  # somebody's __fspath__, or a working directory that is gone


def base_of(given: object, otherwise: str) -> str:
    """The last part of a path, as a label; a numbered one where there is no path."""
    path = path_of(given).rstrip("/")
    return label_of(path.rpartition("/")[2]) if path else numbered_label(otherwise)


def number_of(given: object) -> int | float | None:
    """A count or an amount, of whatever type a framework has for it."""
    try:
        if given is None or isinstance(given, (str, bytes)):
            return None
        number = float(given)  # type: ignore[arg-type]
        if not 0.0 <= number < 2.0**62:
            return None
        return int(number) if number.is_integer() else number
    except Exception:
        return None


def forget_counts() -> None:
    """Counting starts again."""
    _counts.clear()


def after_fork() -> None:
    """The lock may have been another thread's."""
    global _counting  # noqa: PLW0603
    _counting = allocate_lock()


os.register_at_fork(after_in_child=after_fork)
