"""The numbers of the live screen, and why one of them is a dash."""

from __future__ import annotations

from math import isnan, nan

from ckptcost.core.quantities import LineField
from ckptcost.core.units import HOUR_S, KWH_J
from ckptcost.jobs.account import Totals
from ckptcost.present.amounts import DASH, count, duration, number, quantity, rate, share, size
from ckptcost.present.chart import Stat
from ckptcost.report.studies.gap_words import why_text
from ckptcost.report.studies.measure_saves import rate_of
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.curves import total_j
from ckptcost.tui.live.tables import WH_J

SHOWN: tuple[LineField, ...] = ("energy_j", "cost_usd", "location_kgco2e")


def stats_of(board: LiveBoard) -> tuple[Stat, ...]:
    """Where nothing meters power, what is known leads: when the last checkpoint was safe, and how
    much time they take."""
    stats = _stats(board)
    if not board.powerless:
        return stats
    return tuple(
        sorted((*stats[-1:], *stats[-2:-1], *stats[:-2]), key=lambda stat: stat.value == DASH)
    )


def _stats(board: LiveBoard) -> tuple[Stat, ...]:
    totals, prices = board.account.totals, board.account.prices
    s, machine = prices.scenario, prices.machine
    joules, usd, kg = (totals.amounts[q] for q in SHOWN)
    gpu_s = totals.least["gpu_s"]  # of the stalls: what drains take from training is not known
    gpus = nan if machine is None else machine.gpus
    price = (
        ""
        if s is None or isnan(float(s.cluster.usd_per_gpu_s))
        else quantity(float(s.cluster.usd_per_gpu_s), "usd_per_gpu_s")
    )
    grid = (
        ""
        if s is None or isnan(float(s.site.kgco2e_per_j))
        else quantity(float(s.site.kgco2e_per_j), "kgco2e_per_j")
    )
    return (
        _energy(board, joules),
        _session(board),
        _cost(board, usd, price),
        Stat("CO2e", _with(kg, "kg"), _why_not(board, "location_kgco2e") if isnan(kg) else grid),
        Stat(
            "GPU-h lost",
            number(gpu_s / HOUR_S),
            _why_not(board, "gpu_s") if isnan(gpu_s) else f"{count(gpus)} GPUs stood still",
        ),
        _in_checkpoints(board),
        _last_stat(board),
    )


def _energy(board: LiveBoard, joules: float) -> Stat:
    """Of all checkpoints; where a part of each is not known, what the others come to."""
    totals = board.account.totals
    told = _parts(totals) or _why_not(board, "energy_j")
    least_j = sum(totals.lines_j.values())
    if isnan(joules) and least_j > 0:
        return Stat("checkpoints", f"at least {number(least_j / KWH_J)} kWh", told)
    return Stat("checkpoints", _with(joules / KWH_J, "kWh"), told)


def _session(board: LiveBoard) -> Stat:
    """All that was taken since the recording began, at the facility like the checkpoints' share of
    it; where nothing meters the whole node, of the parts that are metered."""
    if board.partly:
        return Stat("session", DASH, "not seen from its beginning")
    node = [one for one in board.sums if one.channel.kind_of_domain == "node"][:1]
    parts = set(board.parts)
    node_j = total_j(node)
    parts_j = total_j([one for one in board.sums if one.channel.domain in parts])
    s = board.account.prices.scenario
    pue = 1.0 if s is None else float(s.site.pue)
    note = "at the node" if s is None else f"at the facility, PUE {number(pue)}"
    if not isnan(node_j):
        return Stat("session", _with(node_j * pue / KWH_J, "kWh"), note)
    if isnan(parts_j):
        return Stat("session", DASH, "no meter has told of joules yet")
    return Stat("session", f"at least {number(parts_j * pue / KWH_J)} kWh", note)


def _in_checkpoints(board: LiveBoard) -> Stat:
    """Time with a checkpoint under way; of it, training stood still for so long."""
    last_s, length_s = max(board.last_s, 0.0), board.length_s
    if not last_s or length_s <= 0:
        return Stat("in checkpoints", DASH)
    timed = board.book.timed(last_s)
    note = f"{duration(round(timed.open_s, 1))} of {duration(round(length_s))}"
    if timed.stalled_s or not timed.stall_unknown:
        note += f", stalled {duration(round(timed.stalled_s, 1))}"
    return Stat("in checkpoints", share(min(timed.open_s / length_s, 1.0)), note)


def _cost(board: LiveBoard, usd: float, price: str) -> Stat:
    """Where a drain runs beside training, what it costs training is not metered: then the rest is a
    lower bound."""
    totals = board.account.totals
    least = totals.least["cost_usd"]
    drains = any((seen.window.drain_s or 0.0) > 0 for seen in board.account.seen.values())
    if isnan(usd) and drains and least > 0:
        return Stat(
            "cost", f"at least {number(least)} USD", "what drains take from training is not known"
        )
    return Stat("cost", _with(usd, "USD"), _why_not(board, "cost_usd") if isnan(usd) else price)


def _with(value: float, unit: str) -> str:
    return DASH if isnan(value) else f"{number(value)} {unit}"


def _parts(totals: Totals) -> str:
    lines = totals.lines_j
    names = (("gpu_wait", "GPU"), ("host_wait", "host"), ("storage_write", "storage"))
    told = [f"{name} {number(lines[line] / WH_J)}" for line, name in names if line in lines]
    return f"{', '.join(told)} Wh" if told else ""


def _why_not(board: LiveBoard, quantity_: LineField) -> str:
    """Why a total is a dash, in a few words."""
    totals, prices = board.account.totals, board.account.prices
    if quantity_ == "gpu_s" and not isnan(totals.least[quantity_]):
        return ""
    if not isnan(totals.amounts[quantity_]):
        return ""
    if prices.problem:
        return "the scenario cannot be used"
    if not totals.saves:
        if not board.book.entries:
            return "no checkpoint yet"
        waiting, over = board.waiting, sum(not entry.open for entry in board.book.entries)
        return (
            f"evaluating {count(float(over - waiting + 1))} of {count(float(over))} ..."
            if waiting
            else "not evaluated yet"
        )
    s, machine = prices.scenario, prices.machine
    stalls = [
        seen.window.stall_s for seen in board.account.seen.values() if seen.contents.of != "load"
    ]
    if quantity_ in ("gpu_s", "cost_usd") and machine is not None and isnan(machine.gpus):
        return "nothing says how many GPUs"
    if stalls and all(stall is None for stall in stalls):
        return "not known how long training stood"
    if quantity_ == "cost_usd" and s is not None and isnan(float(s.cluster.usd_per_gpu_s)):
        return "the scenario has no price of a GPU-hour"
    if quantity_ == "location_kgco2e" and s is not None and isnan(float(s.site.kgco2e_per_j)):
        return "the scenario has no grid factor"
    return next(
        (
            reason(code)
            for name, (code, _) in totals.lacking.items()
            if name in ("gpu_wait", "host_wait")
        ),
        "",
    )


def _last_stat(board: LiveBoard) -> Stat:
    last = next(
        (entry for entry in reversed(board.book.entries) if not entry.is_load and not entry.open),
        None,
    )
    if last is None:
        return Stat("last checkpoint", DASH, "under way" if board.book.open else "none yet")
    window, what = last.best
    if what.error:
        return Stat("last checkpoint", f"#{last.number} failed", what.error, "bad")
    safe_s = (
        None
        if window.begin_s is None or window.durable_s is None
        else window.durable_s - window.begin_s
    )
    value = f"#{last.number}"
    if board.powerless and safe_s is not None:
        told = (f"#{last.number}", size(what.bytes), rate(rate_of(window, what)))
        return Stat(
            "safe after", duration(safe_s), "  ".join(text for text in told if text != DASH)
        )
    if safe_s is not None:
        value += f"  {duration(safe_s)}"
    elif window.stall_s is not None:
        value += f"  held up {duration(window.stall_s)}"
    note = "  ".join(
        text for text in (size(what.bytes), rate(rate_of(window, what))) if text != DASH
    )
    if safe_s is None:
        note = "  ".join(part for part in (note, "not known when safe") if part)
    return Stat("last checkpoint", value, note)


def reason(code: str) -> str:
    """Codes of readings that are missing are in small letters, and are all the same to whoever
    looks on."""
    return why_text("NO_READING" if code == code.lower() else code)
