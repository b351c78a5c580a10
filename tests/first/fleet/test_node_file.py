"""A node's day as a file: every bit comes back, others can read it, and a file that is not as it
was written is never believed."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import pickle
import sys
from datetime import date

import numpy as np
import pytest
from hypothesis import strategies as st

from ckptcost.first.errors import CkptcostError, MeterUnavailable
from ckptcost.first.fleet.node_day import (
    COLUMNS,
    LINES,
    NodeDay,
    NodeDayColumn,
    NodeDayHead,
    empty_rows,
    key_of,
)

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

from ckptcost.first.fleet import node_file  # noqa: E402
from ckptcost.first.fleet.node_file import (  # noqa: E402  # noqa: E402
    LATEST_NS,
    BadNodeFile,
    decode,
    encode,
    seal_parquet,
    text_of,
)

HEAD = NodeDayHead(
    "llama",
    "0123456789abcdef",
    "node-7",
    "2026-11-20",
    {"team": "a", "cluster": "ü"},
    gpus=8.0,
    nodes=2,
    covered_s=86_399.0,
)
NUMBERS = [name for name, column in COLUMNS.items() if column.dtype != "str"]


def realistic(count=700, seed=0):
    """Storage is not known, as on most nodes; bytes and files are the same in every save but not in
    loads."""
    draws = np.random.default_rng(seed)
    rows = empty_rows(count)
    rows["label"][:] = [f"step {1000 * number}" for number in range(count)]
    rows["key"][:] = [key_of(label) for label in rows["label"]]
    rows["begin_ns"][:] = (
        1_795_132_800_000_000_000
        + np.arange(count) * 123_000_000_000
        + draws.integers(0, 10**9, count)
    )
    rows["load"][:2] = True
    rows["stall_s"][:] = draws.lognormal(1, 0.3, count)
    rows["drain_s"][:] = draws.lognormal(3, 0.3, count)
    rows["bytes"][:], rows["files"][:], rows["ranks"][:] = 2.5e10, 8, 8
    rows["bytes"][:2] = 7.0
    rows["gpu_s"][:] = rows["stall_s"] * 8
    for line in LINES[:-1]:
        rows[f"{line}_j"][:] = rows["stall_s"] * draws.normal(2400, 100, count)
        rows[f"{line}_low_j"][:] = rows[f"{line}_j"] * 0.97
        rows[f"{line}_high_j"][:] = np.inf if line == "host" else rows[f"{line}_j"] * 1.03
    return rows


def same(told, rows):
    assert list(told) == list(rows)
    for name, values in rows.items():
        assert told[name].dtype == values.dtype, name
        assert (
            told[name].tolist() == values.tolist()
            if values.dtype == object
            else told[name].tobytes() == values.tobytes()
        ), name
        assert told[name].flags.writeable, name
        assert told[name].flags.aligned, name


@pytest.fixture(scope="module")
def small():
    return encode(NodeDay(HEAD, realistic(3)))


def code_of(data, columns=None):
    with pytest.raises(BadNodeFile) as caught:
        decode(data, columns)
    return caught.value.code


def retold(data, old, new):
    """The JSON says something else of the same length, under a seal that fits."""
    old, new = old.encode(), new.encode()
    assert len(old) == len(new)
    assert data.count(old) == 1
    return resealed(data.replace(old, new))


def resealed(data):
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    at, length = (
        int.from_bytes(data[footer - back : footer - back + 4], "little") for back in (12, 8)
    )
    return seal_parquet(data[: footer - 16] + data[footer:], data[at : at + length])


@pytest.mark.parametrize("count", [0, 1, 2, 700])
def test_every_bit_comes_back(count):
    day = NodeDay(HEAD, realistic(count))
    told = decode(encode(day))
    same(told.rows, day.rows)
    assert repr(told.head) == repr(HEAD)
    assert told.many == count


bits64 = st.integers(0, 2**64 - 1)
bits32 = st.integers(0, 2**32 - 1)
SPECIAL = [
    0,
    1 << 63,
    0x7FF0 << 48,
    0xFFF0 << 48,
    0x7FF8 << 48,
    0x7FF0000000000001,
    1,
    0x0010 << 48,
]


@st.composite
def days(draw):
    count = draw(st.integers(0, 6))
    rows = {}
    for name, column in COLUMNS.items():
        if column.dtype == "str":
            texts = draw(
                st.lists(
                    st.text(st.characters(exclude_categories=["Cs"])),
                    min_size=count,
                    max_size=count,
                )
            )
            rows[name] = np.array([*texts, None], dtype=object)[:-1]
        elif column.dtype == "bool":
            rows[name] = np.array(
                draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=bool
            )
        elif name == "begin_ns":
            rows[name] = np.array(
                draw(st.lists(st.integers(0, LATEST_NS - 1), min_size=count, max_size=count)),
                dtype=np.int64,
            )
        else:
            wide = np.dtype(column.dtype).itemsize == 8
            some = (bits64 | st.sampled_from(SPECIAL)) if wide else bits32
            patterns = draw(
                st.lists(some, min_size=count, max_size=count) | some.map(lambda one: [one] * count)
            )
            rows[name] = np.array(patterns, dtype="u8" if wide else "u4").view(column.dtype)
    for name, (least, most) in node_file.LIMITS.items():
        kept = (rows[name] >= least) & (rows[name] <= most)
        rows[name] = np.where(kept, rows[name], 0).astype(COLUMNS[name].dtype)
    number = st.floats(0.0, 1e6) | st.just(math.nan)
    text = st.text(max_size=9)
    head = NodeDayHead(
        draw(text),
        draw(text),
        draw(text),
        str(draw(st.dates())),
        draw(st.dictionaries(text, text, max_size=3)),
        gpus=draw(number),
        nodes=draw(st.integers(0, 10**9)),
        began_ns=draw(st.integers(0, LATEST_NS - 1)),
        over=draw(st.booleans()),
        exit_code=draw(st.none() | st.integers(-9, 255)),
        gpu_total_j=draw(number),
        step_s=draw(number),
    )
    return NodeDay(head, rows)


def test_pyarrow_reads_the_same():
    """The other reader is the judge of where values were said to lie."""
    rows = realistic()
    table = pq.read_table(io.BytesIO(encode(NodeDay(HEAD, rows))))
    assert table.column_names == [
        "run",
        "host",
        *("begin" if name == "begin_ns" else name for name in COLUMNS),
    ]
    assert str(table.schema.field("begin").type) == "timestamp[ns, tz=UTC]"
    assert set(table["run"].to_pylist()) == {HEAD.run}
    assert set(table["host"].to_pylist()) == {HEAD.host}
    for name in NUMBERS:
        told = table["begin"].cast("int64") if name == "begin_ns" else table[name]
        assert told.null_count == 0
        assert told.to_pylist() == pytest.approx(rows[name].tolist(), rel=0, abs=0, nan_ok=True)
    assert table["label"].to_pylist() == rows["label"].tolist()
    assert json.loads(table.schema.metadata[b"ckptcost"])["head"]["host"] == "node-7"


def test_every_number_is_read_from_its_place(monkeypatch):
    """Ten million rows are read in the time that is due because no number column goes through
    pyarrow; a text does."""
    data = encode(NodeDay(HEAD, realistic()))
    known = json.loads(text_of(data))
    assert list(known["places"]) == NUMBERS
    assert {name for name, (_, held) in known["places"].items() if held == 1} == {
        "files",
        "ranks",
        "host_high_j",
        "storage_j",
        "storage_low_j",
        "storage_high_j",
    }
    assert len(data) < 85_000, "122 bytes a row"
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    assert decode(data, NUMBERS).many == 700
    with pytest.raises(
        MeterUnavailable, match=r"pyarrow is not installed\. pip install 'ckptcost\[fleet\]'"
    ):
        decode(data)
    with pytest.raises(MeterUnavailable, match="pyarrow is not installed"):
        encode(NodeDay(HEAD, realistic(1)))


def test_more_rows_than_a_page_takes():
    """Pages of columns lie apart then: pyarrow puts them together."""
    day = NodeDay(HEAD, realistic(150_000))
    data = encode(day)
    assert "stall_s" not in json.loads(text_of(data))["places"], (
        "this is about columns that have no one place"
    )
    same(decode(data).rows, day.rows)


def test_only_the_columns_asked_for():
    data = encode(NodeDay(HEAD, realistic(3)))
    assert list(decode(data, ["stall_s", "label"]).rows) == ["key", "stall_s", "label"]
    assert decode(data, []).many == 3
    assert decode(data, ()).head.host == "node-7"
    with pytest.raises(ValueError, match="no column stall"):
        decode(data, ["stall"])


def test_the_same_day_gives_the_same_bytes():
    assert encode(NodeDay(HEAD, realistic())) == encode(NodeDay(HEAD, realistic()))


def test_texts_that_are_none():
    rows = realistic(3)
    rows["label"][:] = ["", "a\0b", "step\udcff-9"]
    told = decode(
        encode(NodeDay(dataclasses.replace(HEAD, host="n\udcff", labels={"team": "\ud800"}), rows))
    )
    assert told.rows["label"].tolist() == ["", "a\0b", "step\\udcff-9"]
    assert (told.head.host, told.head.labels) == ("n\udcff", {"team": "\ud800"})


def test_a_flip_of_any_byte_is_found(small):
    """One bit and all bits of every byte: pages, text, footer, seal and both marks. Never believed,
    nor any other exception."""
    for at in range(len(small)):
        for mask in (1 << (at % 8), 0xFF):
            data = bytearray(small)
            data[at] ^= mask
            assert code_of(bytes(data)) in {"CORRUPT", "TRUNCATED", "NOT_OURS"}, (at, mask)
            if 4 <= at < len(small) - 8:
                assert code_of(bytes(data)) == "CORRUPT", (at, mask)


def test_cut_anywhere(small):
    assert {code_of(small[:length]) for length in range(len(small))} == {"TRUNCATED"}


def test_pieces_that_moved(small):
    """What a broken copy or a failing disk leaves."""
    assert code_of(small + b"\0") == "TRUNCATED"
    assert code_of(small + small) == "CORRUPT"
    assert code_of(small[:600] + small[601:]) == "CORRUPT"
    assert code_of(small[:600] + bytes(512) + small[1112:]) == "CORRUPT"
    assert code_of(bytes(len(small))) == "TRUNCATED", "zeros are what a power cut leaves"


@pytest.mark.parametrize(
    "data", [b"hello", b"{}", b"ckptcost.node", b"\x89PNG" + bytes(99), b"PARE" + bytes(99)]
)
def test_no_parquet_at_all(data):
    assert code_of(data) == "NOT_OURS"


def test_parquet_of_others():
    import pandas as pd

    file = io.BytesIO()
    pd.DataFrame({"key": [1]}).to_parquet(file)
    assert code_of(file.getvalue()) == "NOT_OURS"
    assert code_of(b"PAR1" + bytes(12) + b"PAR1") == "NOT_OURS"


def test_written_anew_by_another_program(small):
    """It has the metadata, not the seal: whether the numbers are still ours nobody knows."""
    file = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(small)), file)
    assert code_of(file.getvalue()) == "CORRUPT"
    assert code_of(file.getvalue().replace(b'"version": "1.0"', b'"version": "3.0"')) == "FUTURE"


def test_versions(small):
    with pytest.raises(
        BadNodeFile,
        match=(
            r"n\.parquet: format ckptcost\.node '2\.0', this program reads 1\.x\. use a newer"
            r" ckptcost"
        ),
    ) as caught:
        decode(retold(small, '"version": "1.0"', '"version": "2.0"'), where="n.parquet")
    assert caught.value.code == "FUTURE"
    told = decode(
        retold(
            retold(small, '"version": "1.0"', '"version": "1.7"'), '"source"', '"sauce"'.ljust(8)
        )
    )
    assert told.head.source == "", (
        "a key that is not known is passed over, one that is missing is unknown"
    )


def test_columns_of_another_minor_version(small, monkeypatch):
    rows = realistic(3)
    older = {
        name: column for name, column in COLUMNS.items() if name not in {"gpu_s", "failed", "label"}
    }
    monkeypatch.setattr(node_file, "COLUMNS", older)
    data = encode(NodeDay(HEAD, {name: rows[name] for name in older}))
    monkeypatch.setattr(node_file, "COLUMNS", {**COLUMNS, "more": NodeDayColumn("float64", "")})
    newer = encode(NodeDay(HEAD, {**rows, "more": np.arange(3.0)}))
    monkeypatch.undo()
    unknown = empty_rows(3)
    same(decode(data).rows, {name: (rows if name in older else unknown)[name] for name in COLUMNS})
    same(decode(newer).rows, rows)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"rows": 3', '"rows": 4'),
        ('"rows": 3', '"rows":-1'),
        ('"rows": 3', '"rows":{}'),
        ('"day": "2026-11-20"', '"day": "2026-11-31"'),
        ('"day": "2026-11-20"', '"day": "2026-W47-5"'),
        ('"day"', '"dye"'),
        ('"gpus": 8.0', '"gpus": "8"'),
        ('"nodes": 2', '"nodes":[]'),
        ('"began_ns": 0', '"began_ns":-1'),
        ('"gpus": 8.0', '"gpus":-8.0'),
        ('"gpus": 8.0', '"gpus": 8e9'),
        ('"covered_s": 86399.0', '"covered_s":  "inf" '),
        ('"over": false', '"over":     1'),
        ('"places": {', '"places": ['),
        ('"ckptcost.node"', '"ckptcost.mode"'),
        ('"version": "1.0"', '"version": "one"'),
        ('"version": "1.0"', '"version":  1.0 '),
        ('"team": "a"', '"team": 123'),
        ('{"format"', '["format"'),
        ('"places": {"key": [', '"places": {"key": 1'),
        ('"places": {"key": [', '"places": {"key":[-'),
    ],
)
def test_nonsense_under_a_seal(small, old, new):
    """Nobody writes it; it is told all the same."""
    assert code_of(retold(small, old, new)) == "CORRUPT"


def test_any_nonsense_under_a_seal(small):
    """Each byte of the text, changed and sealed again: a file like any other, or a bad one."""
    begin = small.index(b'{"format"')
    outcomes = set()
    for at in range(begin, begin + len(text_of(small))):
        for new in (b"9", b'"', b"-", b"e", b"\xff"):
            try:
                decode(resealed(small[:at] + new + small[at + 1 :]), NUMBERS)
                outcomes.add("")
            except BadNodeFile as error:
                outcomes.add(error.code)
    assert outcomes >= {"", "CORRUPT", "FUTURE"}


def bad(**changed):
    rows = realistic(3)
    for name, values in changed.items():
        rows[name] = rows[name].copy()
        rows[name][1] = values
    return rows


@pytest.mark.parametrize(
    "rows",
    [
        bad(stall_s=-1e-9),
        bad(stall_s=np.inf),
        bad(begin_ns=-1),
        bad(begin_ns=LATEST_NS),
        bad(bytes=-2.5e10),
        bad(gpu_j=np.inf),
        bad(ranks=-1),
    ],
    ids=["stall", "endless", "before 1970", "after 2200", "bytes", "joules", "ranks"],
)
def test_numbers_that_cannot_be(rows, monkeypatch):
    with pytest.raises(ValueError, match=r"of -|of inf|before 1970"):
        encode(NodeDay(HEAD, rows))
    monkeypatch.setattr(node_file, "_judge", lambda rows: None)
    data = encode(NodeDay(HEAD, rows))
    monkeypatch.undo()
    assert code_of(data) == "CORRUPT"
    if rows["bytes"].min() >= 0 and rows["ranks"].min() >= 0 and np.isfinite(rows["gpu_j"]).all():
        assert code_of(data, ["bytes"]) == "CORRUPT", "whatever was asked for"


def test_the_year_2200():
    assert date(2200, 1, 1).toordinal() - date(1970, 1, 1).toordinal() == LATEST_NS / 86_400e9


def test_rows_that_are_refused():
    rows = realistic(3)
    for changed, words in (
        (
            {"stall_s": rows["stall_s"][:2]},
            r"stall_s: 3 values of float64 were due, not \(2,\) of float64",
        ),
        ({"stall_s": rows["stall_s"].astype("f4")}, "not .* of float32"),
        ({"stall_s": rows["stall_s"].astype(">f8")}, "not .* of >f8"),
        ({"gpu_j": rows["gpu_j"].reshape(3, 1)}, r"\(3, 1\)"),
        ({"label": np.array(["a", None, "b"], dtype=object)}, "not all are texts"),
        ({"more": rows["gpu_j"]}, "unknown: more"),
    ):
        with pytest.raises(ValueError, match=words):
            encode(NodeDay(HEAD, {**rows, **changed}))
    del rows["load"]
    with pytest.raises(ValueError, match="missing or unknown: load"):
        encode(NodeDay(HEAD, rows))
    for head in (dataclasses.replace(HEAD, day="20261120"), dataclasses.replace(HEAD, until_ns=-1)):
        with pytest.raises(ValueError, match=r"no day|no time"):
            encode(NodeDay(head, realistic(3)))


def test_columns_with_gaps_between():
    """A slice of something larger."""
    wide = {name: np.repeat(values, 2) for name, values in realistic(5).items()}
    same(
        decode(encode(NodeDay(HEAD, {name: values[::2] for name, values in wide.items()}))).rows,
        realistic(5),
    )


def test_the_error_travels():
    error = pickle.loads(
        pickle.dumps(BadNodeFile("CORRUPT", "its checksum does not fit", "a.parquet"))
    )
    assert (error.code, error.text, error.where, str(error)) == (
        "CORRUPT",
        "its checksum does not fit",
        "a.parquet",
        "a.parquet: its checksum does not fit",
    )
    assert isinstance(error, CkptcostError)


def test_a_text_that_is_no_utf8_is_set_aside(small):
    """Sealed again, as somebody would who knows how; pyarrow alone would say it, as an error of its
    own."""
    label = b"step 1000"
    at = small.index(label)
    forged = small[:at] + b"\xff\xfe" + small[at + 2 :]
    with pytest.raises(BadNodeFile, match="not as it says"):
        decode(resealed(forged), ["label"])
