"""The desk: the scenario that all screens work on, as a preset or file with changes over it,
exactly as flags of a command would say it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ckptcost.first.catalog.keys import KEYS, WORDS
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.model import comparison_of, one_of
from ckptcost.first.layers import DEFAULT_SCENARIO, Layer, layers_for, layers_of
from ckptcost.first.scenario import Resolved
from ckptcost.first.tui.scenario_file import ONE_OF, changed, quoted

_FLAGS = {"changes": "--set", "target": "--for", "variants": "--with"}


@contextlib.contextmanager
def by_flags() -> Iterator[None]:
    """The screen says a parameter as flags of a command would, in errors too."""
    try:
        yield
    except InputError as error:
        raise error.spelled(lambda name: _FLAGS.get(name, f"--{name}")) from None


OWN = "tier"
"""what a tier without an entry in the catalogue is called, here as on the command line"""
Stamp = tuple[tuple[str, int, int], ...]
"""files with when they were last written, in nanoseconds, and how many bytes they have"""


@dataclass(frozen=True)
class Desk:
    """Never changed in place: a screen puts a new one in its stead, and the others see it when they
    are shown again."""

    catalog: Catalog = field(default_factory=Catalog, compare=False)
    base: str = DEFAULT_SCENARIO
    """a preset or a file"""
    edits: Mapping[str, str] = field(default_factory=dict)
    """path to text, as `--set path=text` takes it; in the order in which they were made"""
    tiers: tuple[str, ...] = ()
    """side by side; empty: those that the scenario compares, else its own"""
    baseline: str = ""
    """the tier that others are held against; empty: the first"""
    metric: str = "kwh"
    """what tables of one quantity show: kwh, gpuh, usd, co2e or time"""
    chosen: str = ""
    """the tier that the interval, the bill and the details are about; empty: the first"""

    def edited(self, path: str, text: str) -> Desk:
        """One more change. How often to save can be said in one way only, so the last one wins."""
        edits = {
            key: value for key, value in self.edits.items() if key != path and not _ousts(path, key)
        }
        return replace(self, edits={**edits, path: text})

    def without(self, path: str) -> Desk:
        return replace(self, edits={key: value for key, value in self.edits.items() if key != path})

    def plain(self) -> Desk:
        """Without any change."""
        return replace(self, edits={})

    def on(self, base: str) -> Desk:
        """Another scenario: changes and tiers belonged to the old one."""
        return replace(self, base=base, edits={}, tiers=(), baseline="", chosen="")

    def saved_as(self, path: str) -> Desk:
        """The same, now in a file: the changes and the tiers are what the file says."""
        return replace(self, base=path, edits={}, tiers=())

    def layers(self) -> list[Layer]:
        """Raises InputError where a file or a change is wrong."""
        with by_flags():
            return layers_for(self.catalog, self.base, None, self.settings())

    def stamp(self) -> Stamp:
        """The files that the scenario is read from: where one was rewritten, what was computed from
        it is of the past."""
        try:
            files = [_file_of(self.catalog, layer) for layer in layers_of(self.catalog, self.base)]
        except (InputError, OSError):  # what can be read of it will differ once it is mended
            files = [Path(self.base)]
        return tuple(
            seen for file in files if file is not None and (seen := _seen(file)) is not None
        )

    def settings(self) -> list[str]:
        return [f"{path}={text}" for path, text in self.edits.items()]

    def timed(self, objective: str = "time") -> Desk:
        """The desk, asking for the best interval where the scenario says none."""
        own = any(layer.has_cadence or layer.compare_saves for layer in self.layers())
        return self if own else self.edited("policy.optimal", objective)

    def tiers_shown(self) -> tuple[str, ...]:
        """The tiers side by side: chosen here, or compared by the scenario, or its only one."""
        if self.tiers:
            return self.tiers
        layers = self.timed().layers()
        own = one_of(self.catalog, layers).words.get("tier.id", "")
        return tuple(dict.fromkeys(comparison_of(layers)[0])) or (str(own),)

    def with_tiers(self, keys: Sequence[str]) -> Desk:
        """Other tiers side by side; none at all leaves the desk as it is."""
        shown = self.tiers_shown()
        tiers = tuple("" if key == OWN and "" in shown else key for key in keys)
        return replace(self.without("tier.id"), tiers=tiers) if tiers and tiers != shown else self

    def without_tier(self, key: str) -> Desk:
        """One tier less; the last one stays."""
        return self.with_tiers(
            [each for tier in self.tiers_shown() if (each := tier or OWN) != key]
        )

    def on_tier(self, key: str) -> Desk:
        """The tier that the other screens are about."""
        return replace(self, chosen="" if key == OWN and "" in self.tiers_shown() else key)

    def same_figures(self, other: Desk | None, stamp: Stamp | None = None) -> bool:
        """Whether two desks differ in nothing that a figure rests on. A scenario that was opened
        anew has new edits, even if both have none; a catalogue that was read anew may hold other
        figures under the same names. `stamp`: of the other's files, when it was computed.
        """
        return (
            other is not None
            and self.base == other.base
            and self.edits is other.edits
            and self.tiers == other.tiers
            and self.catalog is other.catalog
            and (stamp is None or self.stamp() == stamp)
        )

    def tier_chosen(self) -> str:
        shown = self.tiers_shown()
        return self.chosen if self.chosen in shown else shown[0]

    def resolved(self, tier: str | None = None) -> Resolved:
        """The scenario on one tier; the chosen one where none is named."""
        named = self.tier_chosen() if tier is None else tier
        return one_of(self.catalog, self.layers(), named or None)

    def words(self) -> list[str]:
        """The scenario as flags."""
        base = [] if self.base == DEFAULT_SCENARIO else ["-s", self.base]
        return [*base, *(word for setting in self.settings() for word in ("--set", setting))]

    def command(self, name: str, *more: str) -> str:
        """The command line that says the same, ready for a shell."""
        return shlex.join(["ckptcost", name, *self.words(), *more])

    @property
    def title(self) -> str:
        """The scenario's name with a star where something was changed over it."""
        return Path(self.base).name + (" *" if self.edits else "")

    def to_toml(self, beside: Path) -> str:
        """A scenario file that says only what differs; a base that is a file is named as seen from
        the folder `beside`. Raises InputError where a change is none of a scenario."""
        for said in self.edits:
            section, _, key = said.partition(".")
            if key not in KEYS[section] and key not in WORDS[section]:
                raise InputError("is no key of a scenario", key=said)
        base = self.base
        if base.endswith(".toml") or "/" in base:
            path, folder = Path(base).resolve(), beside.resolve()
            base = str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
        return changed(f"extends = {quoted(base)}\n", self.edits, self.tiers)


def scenario_of(desk: Desk) -> Desk:
    """Only what decides the figures: a change of tier.id holds for one tier alone, so it goes where
    several are named."""
    return desk.without("tier.id") if desk.tiers else desk


def _file_of(catalog: Catalog, layer: Layer) -> Path | None:
    """The file of a layer, a preset's too; None where it lies in no folder."""
    if layer.file:
        return Path(layer.file)
    file, _ = catalog.file_of("scenario", layer.label.removeprefix("scenario "))
    return file if isinstance(file, Path) else None


def _seen(file: Path) -> tuple[str, int, int] | None:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return str(file), found.st_mtime_ns, found.st_size


def _ousts(new: str, old: str) -> bool:
    cadences = {f"policy.{key}" for key in ONE_OF}
    return new in cadences and old in cadences
