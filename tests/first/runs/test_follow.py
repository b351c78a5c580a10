"""Following a run that goes on: every line once, whole, over rotations and new recorders."""

from __future__ import annotations

from ckptcost.first.runs.follow import follow
from ckptcost.first.runs.header import Header
from ckptcost.first.runs.lines import encode
from ckptcost.first.runs.writer import Writer


def head(part, dropped):
    return encode(Header(run="r", host="n", part=part).fields())


def note(number, text=""):
    return encode(
        {"k": "mark", "t": number, "name": "note", "window": text, "rank": 0, "by": "api"}
    )


class Script:
    """Does one thing at each wait, then says stop."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.waits = 0

    def wait(self, _seconds):
        self.waits += 1
        if self.steps:
            self.steps.pop(0)()

    def stop(self):
        return not self.steps


def followed(path, script):
    return list(follow(path, stop=script.stop, wait=script.wait))


def test_lines_come_once_and_over_the_ends_of_parts(tmp_path):
    writer = Writer(tmp_path, "n", "r", head, part_bytes=900)
    steps = [lambda k=k: writer.write([note(k * 3 + i) for i in range(3)]) for k in range(20)]
    lines = followed(tmp_path, Script(*steps))
    writer.close()
    assert len(list(tmp_path.iterdir())) > 4
    assert [line.fields["t"] for line in lines if line.fields["k"] == "mark"] == list(range(60))
    assert [line.fields["part"] for line in lines if line.fields["k"] == "run"] == list(
        range(len(list(tmp_path.iterdir())))
    )
    assert not any(line.problem for line in lines)


def test_half_a_line_waits_for_its_other_half(tmp_path):
    path = tmp_path / "n.000.jsonl"
    path.write_bytes(head(0, ()))
    text = note(7)

    def add(data):
        with path.open("ab") as file:
            file.write(data)

    seen = []
    script = Script(lambda: add(text[:20]), lambda: seen.append(len(lines)), lambda: add(text[20:]))
    lines = []
    for line in follow(path, stop=script.stop, wait=script.wait):
        lines.append(line)
    assert seen == [1]
    assert [line.fields["k"] for line in lines] == ["run", "mark"]


def test_bad_lines_are_passed_on_as_such(tmp_path):
    path = tmp_path / "n.000.jsonl"
    path.write_bytes(head(0, ()) + b"garbage\n" + note(1))
    lines = followed(path, Script())
    assert [(bool(line.problem), dict(line.fields).get("k")) for line in lines] == [
        (False, "run"),
        (True, None),
        (False, "mark"),
    ]


def test_it_may_begin_before_the_run_does_and_sees_other_ranks(tmp_path):
    there = tmp_path / "run"
    steps = [
        there.mkdir,
        lambda: (there / "n.000.jsonl").write_bytes(head(0, ())),
        lambda: (there / "n.rank3.jsonl").write_bytes(note(3)),
    ]
    lines = followed(there, Script(*steps))
    assert [line.part for line in lines] == ["n.000.jsonl", "n.rank3.jsonl"]


def test_lines_longer_than_a_chunk(tmp_path):
    path = tmp_path / "n.000.jsonl"
    long = encode({"k": "event", "t": 1, "a": ["x" * 10_000] * 300})
    path.write_bytes(head(0, ()) + long + note(1) * 3)
    assert [line.fields["k"] for line in followed(path, Script())] == [
        "run",
        "event",
        "mark",
        "mark",
        "mark",
    ]


def test_removed_parts_do_not_end_it(tmp_path):
    writer = Writer(tmp_path, "n", "r", head, part_bytes=600, most_bytes=1800)
    steps = [lambda k=k: writer.write([note(k)]) for k in range(40)]
    lines = followed(tmp_path, Script(*steps))
    writer.close()
    assert not (tmp_path / "n.000.jsonl").exists()
    assert [line.fields["t"] for line in lines if line.fields["k"] == "mark"] == list(range(40))
