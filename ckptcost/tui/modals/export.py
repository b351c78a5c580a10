"""Writing what is shown: the table's data, the report, or the screen itself as a picture."""

from __future__ import annotations

from typing import Any

from ckptcost.tui import files
from ckptcost.tui.desk import Desk
from ckptcost.tui.modals.files import Save


class Export(Save):
    """The ending of the name decides: .csv .html .json .md .txt, or .svg for a picture of the
    screen."""

    def __init__(
        self,
        mode: str,
        shown: Any,
        desk: Desk,
        command: str,
        picture: str,
        read: tuple[str, ...] = (),
    ) -> None:
        endings = (
            "csv json md txt svg"
            if shown is not None
            else "svg (there are no figures here to write)"
        )
        super().__init__(
            "Export",
            f"ckptcost-{mode}.{'csv' if shown is not None else 'svg'}",
            f"endings: {endings}",
        )
        self._shown, self._desk, self._command, self._picture, self._read = (
            shown,
            desk,
            command,
            picture,
            read,
        )

    def write(self, path: str, over: bool) -> str:
        if path.endswith(".svg"):
            return str(files.write_text(self._picture, path, over))
        return str(files.write_view(self._shown, path, self._desk, self._command, over, self._read))
