"""Plain aligned columns: text left, numbers right. No library, because `ckptcost model` would pay
for it at every start."""

from __future__ import annotations

from collections.abc import Sequence

LEAST = 8
"""a text column is not cut below this, unless even then the table is too wide"""
LEAST_OF_ALL = 5


def columns(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int = 1,
    gap: str = "  ",
    widest: int | None = None,
) -> list[str]:
    """Lines of a table whose first `left` columns are text; past `widest`, gaps narrow to one and
    then text is cut with "..".

    >>> columns(["tier", "kWh"], [["nas", "1,830"], ["nvme", "12"]])
    ['tier    kWh', 'nas   1,830', 'nvme     12']
    """
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    if widest is not None:
        over = sum(widths) + len(gap) * (len(widths) - 1) - widest
        if over > 0:  # narrower gaps before shorter names
            over -= (len(gap) - 1) * (len(widths) - 1)
            gap = " "
        for least in (LEAST, LEAST_OF_ALL):
            while (
                over > 0 and left and max(widths[:left]) > least
            ):  # the widest gives first, so that no name is cut for another's sake
                widths[widths.index(max(widths[:left]))] -= 1
                over -= 1
        cells = [
            list(row)
            for row in zip(
                *(
                    _cut(column, width)
                    for column, width in zip(zip(*cells, strict=True), widths, strict=True)
                ),
                strict=True,
            )
        ]
    return [_line(row, widths, left, gap) for row in cells]


def _cut(column: Sequence[str], width: int) -> list[str]:
    """Cells that are too long lose their end; their middle, where ends are what tells them apart.

    >>> _cut(["pretraining-01", "short"], 8), _cut(["pretraining-01", "pretraining-02"], 8)
    (['pretra..', 'short'], ['pre..-01', 'pre..-02'])
    """
    ended = [cell if len(cell) <= width else cell[: width - 2] + ".." for cell in column]
    if len(set(ended)) == len(set(column)) or width < LEAST:
        return ended
    first = (width - 2) // 2
    return [
        cell if len(cell) <= width else f"{cell[:first]}..{cell[len(cell) - (width - 2 - first) :]}"
        for cell in column
    ]


def _line(row: Sequence[str], widths: Sequence[int], left: int, gap: str) -> str:
    return gap.join(
        cell.ljust(width) if i < left else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ).rstrip()


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """The same as a GitHub table; pipes in cells are escaped.

    >>> markdown(["tier", "kWh"], [["a|b", "3"]])
    ['| tier | kWh |', '| :--- | ---: |', '| a\\\\|b | 3 |']
    """
    rule = [":---" if i < left else "---:" for i in range(len(header))]
    safe = [
        [cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in [header, *rows]
    ]
    return ["| " + " | ".join(row) + " |" for row in [safe[0], rule, *safe[1:]]]
