"""Numbers and texts as YAML that readers of its versions 1.1 and 1.2 take for the same."""

from __future__ import annotations

import json


def number(value: float) -> str:
    """With a point, without which a reader of YAML 1.1 takes 1e-07 for text.

    >>> number(1e-07), number(383.5), number(3600)
    ('1.0e-07', '383.5', '3600.0')
    """
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


def quoted(text: str) -> str:
    """Any text as YAML in double quotes, on one line.

    >>> print(quoted('a: "b"\\n\\u2028 - é'))
    "a: \\"b\\"\\n\\u2028 - é"
    """
    plain = json.dumps(text, ensure_ascii=False)
    return (
        plain
        if plain.isprintable()
        else "".join(c if c.isprintable() else _escape(c) for c in plain)
    )


def _escape(character: str) -> str:
    point = ord(character)
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
