"""One line: exact numbers, a checksum that notices, and nothing that a caller can put in raises."""

from __future__ import annotations

import enum
import json
import math
import zlib
from binascii import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.runs.lines import (
    SEAL,
    BadLine,
    Raw,
    Second,
    decode,
    encode,
    plain,
    raw_line,
    second_line,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(
        st.one_of(FINITE, st.just(math.nan), st.just(math.inf), st.just(-math.inf)), max_size=5
    ),
    st.integers(0, 2**62),
)
def test_ticks_come_back_exactly(row, t_ns):
    line = raw_line(Raw(t_ns, (7,), (tuple(row),)))
    assert line.endswith(b'"}\n')
    assert line.count(b"\n") == 1
    fields = decode(line[:-1])
    assert fields["t"] == t_ns
    for wrote, read in zip(row, fields["v"][0], strict=True):
        assert (
            (read is None)
            if not math.isfinite(wrote)
            else (read == wrote and math.copysign(1, read) == math.copysign(1, wrote))
        )


def test_the_checksum_is_crc32_of_what_is_before_it():
    line = second_line(Second(1, 2, (1,), (3,), ([5.0, [1.0, 0.5, 2.0, 2], None],)))
    fields = json.loads(line)
    body = line[: -SEAL - 1]
    assert f"{zlib.crc32(body):08x}" == fields["c"]
    assert list(fields)[-1] == "c"
    assert decode(line[:-1]) == {
        "k": "second",
        "t": 2,
        "from": 1,
        "n": [1],
        "d": [3],
        "v": [[5.0, [1.0, 0.5, 2.0, 2], None]],
    }


def test_every_single_changed_byte_is_noticed():
    line = raw_line(Raw(123, (7,), ((1.5, math.nan),)))[:-1]
    for i in range(len(line)):
        for flip in (1, 128):
            broken = line[:i] + bytes([line[i] ^ flip]) + line[i + 1 :]
            with pytest.raises(BadLine):
                decode(broken)


@pytest.mark.parametrize(
    "line", [b"", b"\0" * 40, b"{}", b'{"k":"x"}', b"\xff" * 100, b',"c":"00000000"}']
)
def test_garbage_is_no_line(line):
    with pytest.raises(BadLine):
        decode(line)


def sealed_text(text: str) -> bytes:
    raw = text.encode()
    return raw + b',"c":"%08x"}' % zlib.crc32(raw)


@pytest.mark.parametrize("text", ["[1", '{"k":3', '{"a":1', "{" * 2000, '{"k":"x" "y"'])
def test_a_good_checksum_does_not_make_it_a_line(text):
    with pytest.raises(BadLine):
        decode(sealed_text(text))


class Colour(enum.IntEnum):
    RED = 3


class Rude:
    def __str__(self) -> str:
        raise RuntimeError


def test_anything_in_a_mark_becomes_json():
    loop: list[object] = []
    loop.append(loop)
    detail = {
        "nan": math.nan,
        "inf": -math.inf,
        "np": np.float32(1.5),
        "npi": np.int64(2**62),
        "npn": np.float64("nan"),
        "enum": Colour.RED,
        "rude": Rude(),
        "loop": loop,
        "path": np,
        "huge": "x" * 50_000,
        7: (1, 2),
        "yes": True,
        "text": 'ä"\n\0',
        "lone": "a\ud800b",
    }
    back = decode(
        encode(
            {
                "k": "mark",
                "t": 1,
                "detail": {key: value for key, value in detail.items() if key != "lone"},
            }
        )[:-1]
    )["detail"]
    assert (back["nan"], back["inf"], back["npn"]) == (None, None, None)
    assert (back["np"], back["npi"], back["enum"], back["7"], back["yes"]) == (
        1.5,
        2**62,
        3,
        [1, 2],
        True,
    )
    assert back["text"] == 'ä"\n\0'
    assert back["rude"] == "<Rude>"
    assert len(back["huge"]) < 20_000
    assert (
        decode(encode({"k": "mark", "t": 1, "name": "begin", "detail": detail})[:-1])["name"]
        == "begin"
    )  # the surrogate cost its detail


@pytest.mark.parametrize(
    "half", [b"\\ud800", b"\\uDCff", "\ud800".encode("utf-8", "surrogatepass")]
)
def test_half_a_letter_is_written_out(half):
    """Names of files may be any bytes, and nothing that is made of a run takes half a letter."""
    body = b'{"k":"mark","window":"a' + half + b'","detail":{"' + half + b'":["' + half + b'"]}'
    whole = decode(b'%s,"c":"%08x"}' % (body, crc32(body)))
    json.dumps(whole, ensure_ascii=False).encode("utf-8")
    assert whole["window"].startswith("a\\ud")
    assert decode(encode({"k": "mark", "window": "\U0001f600"})[:-1])["window"] == "\U0001f600"


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    FINITE,
    st.text(st.characters(exclude_categories=["Cs"])),
)
KEYS = st.text("abc", max_size=3)


@given(
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    )
)
def test_json_stays_as_it_is(value):
    assert plain(value) == value
    assert decode(encode({"k": "mark", "detail": value})[:-1])["detail"] == value
