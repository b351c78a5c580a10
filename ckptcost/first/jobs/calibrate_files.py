"""A calibration as files of the user's catalogue: a tier, and a cluster where power is known. Read
back before they are put in place."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from ckptcost.first.catalog import files
from ckptcost.first.catalog.keys import meaning_of
from ckptcost.first.catalog.schema import printable
from ckptcost.first.catalog.store import KINDS, Catalog
from ckptcost.first.catalog.writing import write_whole
from ckptcost.first.errors import Argument, InputError, OutputError, brief
from ckptcost.first.jobs.calibrate import SIMULATED, Calibration, Parameter
from ckptcost.first.version import __version__

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WRITTEN: Final = {
    "bytes_per_s": (1e9, " GB/s"),
    "s": (1.0, " s"),
    "w": (1.0, " W"),
    "j_per_byte": (1e-9, " J/GB"),
    "files_per_s": (1.0, " files/s"),
    "": (1.0, ""),
}
"""a base unit as people write it"""
_NOWHERE: Final = Path(os.devnull)
"""no user's folder: the shipped catalogue alone"""
_DIGITS: Final = 7
_AGREES: Final = 1e-5


def checked_id(said: str) -> str:
    """A catalogue entry is called like its file."""
    if not _ID.fullmatch(said) or said.endswith(".toml"):
        raise InputError(
            f"{brief(said)} is no name of a catalogue entry",
            where=Argument("entry"),
            remedy=(
                "letters, digits, dot, dash and underscore, a letter or digit first, e.g. --as"
                " our-lustre"
            ),
        )
    return said


def checked_name(said: str) -> str:
    try:
        return printable(said)
    except InputError as error:
        raise error.at(Argument("name")) from None


def texts_of(c: Calibration) -> dict[str, str]:
    """The files by kind. A tier without a rate would be none, a cluster without a GPU's watts says
    nothing."""
    found = {}
    if c.parameter("write").estimate.known:
        found["tier"] = _text(c, "tier")
    if c.gpus and c.parameter("gpu_train").estimate.known:
        found["cluster"] = _text(c, "cluster")
    return found


def target_of(kind: str, id_: str, overlay: Path | None = None) -> Path:
    return (
        (files.overlay() if overlay is None else overlay) / "models" / KINDS[kind] / f"{id_}.toml"
    )


def free(id_: str, kinds: Sequence[str], overlay: Path | None = None) -> None:
    """Refuse to stand where something stands: in the user's folder, or before an entry that
    ships."""
    for kind in kinds:
        target = target_of(kind, id_, overlay)
        if target.exists() or target.is_symlink():
            raise InputError(
                "is already there",
                where=str(target),
                remedy="choose another name, or replace it with --force",
            )
        if id_ in Catalog(overlay=_NOWHERE).ids(kind):
            raise InputError(
                f"a {kind} that ships is called {id_!r}",
                where=Argument("entry"),
                remedy="choose another name, or hide it with --force",
            )


def install(c: Calibration, *, force: bool = False, overlay: Path | None = None) -> list[Path]:
    """Write the files; none of them before all have been read back."""
    texts = texts_of(c)
    if not force:
        free(c.id, list(texts), overlay)
    _read_back(c, texts)
    written = []
    for kind, text in texts.items():
        target = target_of(kind, c.id, overlay)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole([text], target)
        except OSError as error:
            raise OutputError(
                f"{target}: could not be written ({error.strerror or error})"
            ) from None
        written.append(target)
    return written


def _read_back(c: Calibration, texts: dict[str, str]) -> None:
    """What the catalogue makes of them must be the figures that were meant."""
    try:
        with tempfile.TemporaryDirectory(prefix="ckptcost-") as scratch:
            for kind, text in texts.items():
                file = target_of(kind, c.id, Path(scratch))
                file.parent.mkdir(parents=True)
                file.write_text(text, "utf-8")
                entity = Catalog(overlay=Path(scratch)).get(kind, c.id)
                for parameter in _section_parameters(c, kind):
                    found = entity.figures[parameter.path.partition(".")[2]].value
                    if abs(found - parameter.estimate.value) > _AGREES * abs(
                        parameter.estimate.value
                    ):
                        raise InputError(
                            f"{parameter.path} reads back as {found:g}, not"
                            f" {parameter.estimate.value:g}",
                            where=str(file),
                        )
    except OSError as error:
        raise OutputError(f"no scratch file could be written ({error.strerror or error})") from None


def _section_parameters(c: Calibration, section: str) -> list[Parameter]:
    """The known figures that the file of a section has."""
    return [p for p in _writable(c) if p.path.startswith(f"{section}.")]


def _writable(c: Calibration) -> list[Parameter]:
    return [p for p in c.parameters if p.estimate.known and p.estimate.value >= 0]


def _text(c: Calibration, kind: str) -> str:
    what = {"tier": "Storage", "cluster": "Power"}[kind]
    hosts = ", ".join(dict.fromkeys(origin.host for origin in c.origins))
    title = c.name or f"{what} of {hosts}, calibrated"
    lines = [f"# {line}" for line in _about(c, kind)]
    lines += [
        f"id     = {_quote_toml(c.id)}",
        f"name   = {_quote_toml(f'{SIMULATED}: {title}' if c.simulated else title)}",
        'kind   = "calibrated"',
        f"note   = {_quote_toml(_note(c, kind))}",
        f"basis  = {_quote_toml('assumed' if c.simulated else 'measured')}",
        f"source = {_quote_toml(c.source)}",
    ]
    if kind == "tier":
        lines += [
            f'survives = "{c.survives}"    # edit: whether a copy outlives the loss of its node',
            f'boundary = "{c.boundary}"',
        ]
    else:
        lines += [
            "",
            f"gpus = {c.gpus}             # one node: set cluster.gpus to the size of your job",
            f"gpus_per_node = {c.gpus}",
        ]
    for parameter in _section_parameters(c, kind):
        lines += ["", *_figure(c, parameter)]
    if kind == "tier":
        lines += _beside(c)
    return "\n".join(lines) + "\n"


def _beside(c: Calibration) -> list[str]:
    """Figures that belong to no file."""
    beside = [p for p in _writable(c) if not p.path.startswith(("tier.", "cluster."))]
    if not beside:
        return []
    return [
        "",
        "# measured with it; the model takes policy.* from a scenario or from --set",
        "[about]",
        *(f"{p.id} = {_quote_toml(_amount(p.estimate.value, p.unit))}" for p in beside),
    ]


def _about(c: Calibration, kind: str) -> list[str]:
    """What was measured, when, on what, and what was left out."""
    lines = [
        (
            f"{SIMULATED}: no machine was measured."
            if c.simulated
            else f"Written by ckptcost {__version__}, `ckptcost calibrate`, from"
        )
    ]
    lines += [
        f"  run {o.run}, host {o.host}, {o.date}: {o.saves} saves, {o.loads} loads"
        for o in c.origins
    ]
    if kind == "cluster":
        return [
            *lines,
            (
                "Watts at the node, without PUE; low and high hold the mean in 95 % of such runs."
                f" {c.gpus} GPUs were metered."
            ),
        ]
    return lines + _about_saves(c)


def _about_saves(c: Calibration) -> list[str]:
    sizes = [round_.bytes for round_ in c.saves]
    how = "Asynchronous" if c.mode == "async" else "Synchronous"
    lines = [
        f"{how} saves of {_amount(min(sizes), 'bytes')} to {_amount(max(sizes), 'bytes')}.",
        "seconds = setup + bytes/rate, by least squares on durations; low and high: 95 %.",
    ]
    if c.left:
        counted = Counter(one.why for one in c.left)
        lines.append(f"Left out: {', '.join(f'{n} {why}' for why, n in counted.most_common())}.")
    if c.writes.residuals_s and isfinite(c.writes.spread_fraction):
        worst_s = max(map(abs, c.writes.residuals_s))
        lines.append(
            f"Durations scatter by {100 * c.writes.spread_fraction:.3g} % around the fit,"
            f" {worst_s:.3g} s at most."
        )
    return lines


def _note(c: Calibration, kind: str) -> str:
    if kind == "cluster":
        return "one node; power of the rest of a node needs a meter of the whole node"
    if c.boundary == "node":
        return "rates of one node: nodes * rate, until something shared is narrower"
    return (
        "rate of the whole storage, as all nodes used it"
        if c.parameter("write").path == "tier.write"
        else "rates of one node"
    )


def _figure(c: Calibration, parameter: Parameter) -> list[str]:
    """One table: what the key means, value, range, rounds."""
    section, _, key = parameter.path.partition(".")
    estimate = parameter.estimate
    note = (
        f"{estimate.n} round{'' if estimate.n == 1 else 's'}; {parameter.note}"
        if parameter.note
        else f"{estimate.n} rounds"
    )
    lines = [
        f"[{key}]  # {meaning_of(section, key)}",
        f"value = {_quote_toml(_amount(estimate.value, parameter.unit))}",
    ]
    low, high = estimate.low, estimate.high
    if low is not None and high is not None:
        if isfinite(high):
            lines += [
                f"low = {_quote_toml(_amount(max(low, 0.0), parameter.unit))}",
                f"high = {_quote_toml(_amount(high, parameter.unit))}",
            ]
        else:
            note += f"; at least {_amount(low, parameter.unit)}, no upper end"
    if parameter.basis != "measured" and not c.simulated:
        lines.append(f"basis = {_quote_toml(parameter.basis)}")
    if parameter.boundary:
        lines.append(f"boundary = {_quote_toml(parameter.boundary)}")
    return [*lines, f"note = {_quote_toml(note)}"]


def _amount(value: float, unit: str) -> str:
    """With its unit, as it can be read back.

    >>> _amount(1.5e9, "bytes_per_s"), _amount(0.25, ""), _amount(2e12, "bytes")
    ('1.5 GB/s', '0.25', '2000 GB')
    """
    scale, word = (1e9, " GB") if unit == "bytes" else _WRITTEN[unit]
    return f"{value / scale:.{_DIGITS}g}{word}"


def _quote_toml(text: str) -> str:
    """A TOML string: JSON's is one."""
    return json.dumps(text, ensure_ascii=False)
