"""What several formats spell alike: JSON files, YAML that readers of its versions 1.1 and 1.2 take
for the same, sources in words."""

from __future__ import annotations

import json
from typing import Any

from ckptcost.first.errors import IN_JSON
from ckptcost.first.report.parts import Factor


def yaml_number(value: float) -> str:
    """With a point, without which a reader of YAML 1.1 takes 1e-07 for text.

    >>> yaml_number(1e-07), yaml_number(383.5), yaml_number(3600)
    ('1.0e-07', '383.5', '3600.0')
    """
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


def quote_yaml(text: str) -> str:
    """Any text as YAML in double quotes, on one line.

    >>> print(quote_yaml('a: "b"\\n\\u2028 - é'))
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


def json_file(value: Any, indent: int) -> list[str]:
    """Strictly: no NaN, which JSON does not have."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return [text.translate(IN_JSON), "\n"]


def without_unknown(fields: dict[str, Any]) -> dict[str, Any]:
    """Where every field is optional, and null is no value to its readers."""
    return {key: value for key, value in fields.items() if value is not None}


def sources_of(factor: Factor) -> str:
    """Titles with licences; who says so where there is no source."""
    return (
        ", ".join(
            each.title + (f" ({each.licence})" if each.licence else "") for each in factor.sources
        )
        or factor.origin
    )
