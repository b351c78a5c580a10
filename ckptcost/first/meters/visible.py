"""Which cards are in this machine, and which a job may use, from its environment:
CUDA_VISIBLE_DEVICES and its kin, read as the drivers read them.

An index counts the cards that this process may open, so a card of another job's cgroup is not
counted. Entries are of one kind, indices or UUIDs; the first that names nothing ends the list, and
a repeated one empties it. A MIG instance stands for its parent card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.meters.kept import file_text

_INDEX = re.compile(r"\+?(\d+)")
_OLD_MIG = re.compile(r"MIG-(GPU-[^/]+)/(\d+)/(\d+)")
_NO_CARDS = ("", "void", "none")


class Slice(NamedTuple):
    """A MIG instance: its name and its place on the card."""

    uuid: str
    gpu_instance: int
    compute_instance: int


class Card(NamedTuple):
    number: int
    """its number in the vendor's management library, which goes by PCI address"""
    uuid: str
    name: str = ""
    slices: tuple[Slice, ...] = ()


class Remark(NamedTuple):
    """Something the environment says that people should know."""

    reason: str
    remedy: str


class Choice(NamedTuple):
    cards: tuple[Card, ...]
    """the cards to measure, in the order they are named"""
    slices: Mapping[int, tuple[str, ...]]
    """MIG instances that were named, by the index of their card"""
    remarks: tuple[Remark, ...] = ()
    by: str = ""
    """the setting that decided, as `NAME=value`; empty where all cards are taken"""


def are_on_bus(sysfs: Path, maker: str, classes: tuple[str, ...]) -> bool:
    """Whether PCI devices of a maker and class are here."""
    return any(
        file_text(device / "vendor") == maker and file_text(device / "class").startswith(classes)
        for device in sysfs.glob("bus/pci/devices/*")
    )


def choose_cards(
    environ: Mapping[str, str], cards: Sequence[Card], everything: bool = False
) -> Choice:
    """The NVIDIA cards that a job with this environment can use.

    >>> two = [Card(0, "GPU-aa"), Card(1, "GPU-bb")]
    >>> [card.number for card in choose_cards({"CUDA_VISIBLE_DEVICES": "1,7,0"}, two).cards]
    [1]
    """
    text = environ.get("CUDA_VISIBLE_DEVICES")
    if everything:
        return Choice(tuple(cards), {})
    if text is None:
        return _container_choice(environ.get("NVIDIA_VISIBLE_DEVICES"), cards)
    choice = cards_named("CUDA_VISIBLE_DEVICES", text, cards)
    if (
        _INDEX.match(text.strip())
        and environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID"
        and len({card.name for card in cards}) > 1
    ):
        unlike = Remark(
            "the cards of this node are unlike, and CUDA numbers them fastest first: its index may"
            " name another card than the one measured",
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the cards by UUID (nvidia-smi -L)",
        )
        return choice._replace(remarks=choice.remarks + (unlike,))
    return choice


def cards_named(variable: str, text: str, cards: Sequence[Card]) -> Choice:
    """The cards that one variable names.

    >>> cards_named("HIP_VISIBLE_DEVICES", "0,0", [Card(0, "")]).cards
    ()
    """
    by = f"{variable}={text}"
    picked: list[tuple[Card, str]] = []
    remarks: list[Remark] = []
    slices: dict[int, tuple[str, ...]] = {}
    kind = _kind(text.split(",", maxsplit=1)[0].strip())
    for entry in (part.strip() for part in text.split(",")):
        found = _card_of(entry, cards) if _kind(entry) == kind else None
        if found is None:
            # empty and -1 are the customary ways to say: no more
            if text.strip() and entry != "-1":
                said = (
                    f"{variable}: {entry!r} names no card here; it and all entries after it are"
                    " ignored, as the driver does"
                )
                remarks.append(
                    Remark(said, f"correct {variable}; `nvidia-smi -L` lists what there is")
                )
            break
        if found in picked:
            said = f"{variable} names {entry!r} twice, which hides every card"
            return Choice((), {}, (Remark(said, f"name each card once in {variable}"),), by)
        picked.append(found)
        card, name = found
        if name:
            slices[card.number] = slices.get(card.number, ()) + (name,)
    return Choice(tuple(dict.fromkeys(card for card, _ in picked)), slices, tuple(remarks), by)


def _kind(entry: str) -> str:
    for prefix in ("GPU-", "MIG-"):
        if entry.startswith(prefix):
            return prefix
    return "index" if _INDEX.match(entry) else ""


def _card_of(entry: str, cards: Sequence[Card]) -> tuple[Card, str] | None:
    """The card an entry names, and the MIG instance on it, if any."""
    if number := _INDEX.match(entry):  # `1gpu` is 1: the driver reads digits and no further
        place = int(number[1][:9])
        return (cards[place], "") if place < len(cards) else None
    if old := _OLD_MIG.fullmatch(entry):
        instance = int(old[2]), int(old[3])
        slices = _slices_of(_card_by_prefix(old[1], cards))
        return next(((card, part.uuid) for card, part in slices if part[1:] == instance), None)
    if entry.startswith("MIG-"):
        hits = [
            (card, part.uuid) for card, part in _slices_of(cards) if part.uuid.startswith(entry)
        ]
        return hits[0] if len(hits) == 1 else None
    near = _card_by_prefix(entry, cards) if entry.startswith("GPU-") else None
    return (near[0], "") if near else None


def _slices_of(cards: Sequence[Card]) -> list[tuple[Card, Slice]]:
    return [(card, part) for card in cards for part in card.slices]


def _card_by_prefix(uuid: str, cards: Sequence[Card]) -> list[Card]:
    """The one card whose UUID begins so; none where it is not one."""
    near = [card for card in cards if card.uuid.startswith(uuid)]
    return near if len(near) == 1 else []


def _container_choice(granted: str | None, cards: Sequence[Card]) -> Choice:
    """What a container was granted matters only where it sees more, as a privileged one does: its
    indices are the host's then."""
    names = [name.strip() for name in (granted or "").split(",")]
    if granted is None or granted in _NO_CARDS or "all" in names or len(names) >= len(cards):
        return Choice(tuple(cards), {})
    choice = cards_named("NVIDIA_VISIBLE_DEVICES", granted, cards)
    if len(choice.cards) == len(names) or choice.slices:
        return choice
    return Choice(tuple(cards), {}, choice.remarks)
