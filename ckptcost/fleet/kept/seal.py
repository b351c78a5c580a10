"""A Parquet file under a checksum of all its bytes, and a text in it that is found without a
Parquet reader.

Readers find a Parquet file's footer from its end and the pages by their offsets, so bytes between
pages and footer are nobody's: 16 of them hold the seal. Checked first, it keeps every flipped byte
from the libraries that would otherwise take it for a length.
"""

from __future__ import annotations

import re
import struct
from binascii import crc32
from typing import Final

from ckptcost.errors import InputError

CORRUPT, TRUNCATED, FUTURE, NOT_OURS = "CORRUPT", "TRUNCATED", "FUTURE", "NOT_OURS"
MARK: Final = b"PAR1"
"""begins and ends every Parquet file"""
FORMAT: Final = "ckptcost.node"
VERSION: Final = "1.0"
MAJOR: Final = 1
SEAL: Final = b"CKS1"

_SEAL: Final = struct.Struct("<4sIII")
"""SEAL, where the text begins, its bytes, CRC-32 of all bytes of the file but these last four"""
_END: Final = struct.Struct("<I4s")
_VERSION: Final = re.compile(rb'"format": ?"ckptcost\.node", ?"version": ?"(\d{1,6})\.')


class BadNodeFile(InputError):
    """A node's file that says nothing reliable. `code`: CORRUPT, TRUNCATED, FUTURE or NOT_OURS."""

    def __init__(self, code: str, text: str, where: str = "") -> None:
        self.code, self.text = code, text
        super().__init__(text, where=where, remedy="use a newer ckptcost" if code == FUTURE else "")

    def __reduce__(self) -> tuple[type[BadNodeFile], tuple[str, str, str]]:
        return type(self), (self.code, self.text, self.where)


def sealed(parquet: bytes, text: bytes) -> bytes:
    """`text` is somewhere in the footer already, as a value of its metadata."""
    footer = _footer_of(parquet)
    if footer is None or (at := parquet.find(text, footer)) < 0:
        raise ValueError("no Parquet file with this text in its footer")
    head = parquet[:footer] + _SEAL.pack(SEAL, at + _SEAL.size, len(text), 0)[:-4]
    tail = parquet[footer:]
    return b"".join((head, struct.pack("<I", crc32(tail, crc32(head))), tail))


def text_of(data: bytes) -> bytes:
    """Raises BadNodeFile where a byte is not as it was written."""
    if not data.endswith(MARK) or len(data) < 2 * len(MARK) + _END.size:
        if data[:4] != MARK[: len(data)] and data.strip(b"\0"):
            raise BadNodeFile(NOT_OURS, "no Parquet file")
        raise BadNodeFile(TRUNCATED, "it is empty" if not data else "its end is missing")
    footer = _footer_of(data)
    if (
        footer is None
        or footer < _SEAL.size
        or data[footer - _SEAL.size : footer - _SEAL.size + 4] != SEAL
    ):
        raise _unsealed(data)
    _, at, length, crc = _SEAL.unpack_from(data, footer - _SEAL.size)
    view = memoryview(data)
    if crc32(view[footer:], crc32(view[: footer - 4])) != crc:
        raise BadNodeFile(CORRUPT, "its checksum does not fit")
    return data[at : at + length]


def _footer_of(data: bytes) -> int | None:
    """Where it begins."""
    length, _ = _END.unpack_from(data, len(data) - _END.size)
    begin = len(data) - _END.size - length
    return begin if begin >= len(MARK) else None


def _unsealed(data: bytes) -> BadNodeFile:
    """Somebody else's, a later format, or ours with the seal broken: its name is in it more than
    once."""
    if (found := _VERSION.search(data)) and int(found[1]) > MAJOR:
        return BadNodeFile(
            FUTURE, f"format {FORMAT} {int(found[1])}.x, this program reads {MAJOR}.x"
        )
    if FORMAT.encode() in data:
        return BadNodeFile(CORRUPT, "its seal is broken, or another program wrote it anew")
    return BadNodeFile(NOT_OURS, f"a Parquet file, but no {FORMAT}")
