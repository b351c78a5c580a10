"""Plain aligned columns: text left, numbers right. No library, because `ckptcost model` would pay for it at every start."""

from __future__ import annotations

from collections.abc import Sequence


def columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, indent: str = "", gap: str = "  ", widest: int | None = None
) -> list[str]:
    """Lines of a table whose first `left` columns are text; the first is cut with ".." when the line would pass `widest`.

    >>> columns(["tier", "kWh"], [["nas", "1,830"], ["nvme", "12"]])
    ['tier    kWh', 'nas   1,830', 'nvme     12']
    """
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    if widest is not None:
        over = len(indent) + sum(widths) + len(gap) * (len(widths) - 1) - widest
        if over > 0:
            widths[0] = max(8, widths[0] - over)
            cells = [[row[0] if len(row[0]) <= widths[0] else row[0][: widths[0] - 2] + "..", *row[1:]] for row in cells]
    return [
        (
            indent
            + gap.join(
                cell.ljust(width) if i < left else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        ).rstrip()
        for row in cells
    ]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """The same as a GitHub table; pipes in cells are escaped.

    >>> markdown(["tier", "kWh"], [["a|b", "3"]])
    ['| tier | kWh |', '| :--- | ---: |', '| a\\\\|b | 3 |']
    """
    rule = [":---" if i < left else "---:" for i in range(len(header))]
    safe = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in [header, *rows]]
    return ["| " + " | ".join(row) + " |" for row in [safe[0], rule, *safe[1:]]]
