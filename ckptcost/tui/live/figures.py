"""The numbers of the live screen, and why one of them is a dash."""

from __future__ import annotations

from math import isnan, nan

from ckptcost.core.quantities import LineField
from ckptcost.core.units import HOUR_S, KWH_J
from ckptcost.present.amounts import DASH, count, duration, number, quantity, rate, share, size
from ckptcost.present.chart import Stat
from ckptcost.report.studies.gap_words import why_text
from ckptcost.report.studies.measure_saves import rate_of
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.curves import total_j
from ckptcost.tui.live.tables import WH_J, safe_s

SHOWN: tuple[LineField, ...] = ("energy_j", "cost_usd", "location_kgco2e")


def stats_of(board: LiveBoard) -> tuple[Stat, ...]:
    """Where nothing meters power, what is known leads: when the last checkpoint was safe, and how
    much time they take."""
    totals, machine = board.account.totals, board.account.prices.machine
    kg, gpu_s = totals.amounts["location_kgco2e"], totals.least["gpu_s"]
    # `gpu_s` is of the stalls: what drains take from training is not known
    stood = f"{count(nan if machine is None else machine.gpus)} GPUs stood still"
    stats = (
        _energy(board),
        _session(board),
        _cost(board),
        Stat(
            "CO2e",
            _with(kg, "kg"),
            _why_not(board, "location_kgco2e") if isnan(kg) else _grid(board),
        ),
        Stat(
            "GPU-h lost",
            number(gpu_s / HOUR_S),
            _why_not(board, "gpu_s") if isnan(gpu_s) else stood,
        ),
        _in_checkpoints(board),
        _last(board),
    )
    if not board.powerless:
        return stats
    *others, timed, last = stats
    return tuple(sorted((last, timed, *others), key=lambda stat: stat.value == DASH))


def _energy(board: LiveBoard) -> Stat:
    """Of all checkpoints; where a part of each is not known, what the others come to."""
    totals = board.account.totals
    joules, lines = totals.amounts["energy_j"], totals.lines_j
    names = (("gpu_wait", "GPU"), ("host_wait", "host"), ("storage_write", "storage"))
    told = ", ".join(
        f"{name} {number(lines[line] / WH_J)}" for line, name in names if line in lines
    )
    note = f"{told} Wh" if told else _why_not(board, "energy_j")
    least_j = sum(lines.values())
    if isnan(joules) and least_j > 0:
        return Stat("checkpoints", f"at least {number(least_j / KWH_J)} kWh", note)
    return Stat("checkpoints", _with(joules / KWH_J, "kWh"), note)


def _session(board: LiveBoard) -> Stat:
    """All that was taken since the recording began, at the facility like the checkpoints' share of
    it; where nothing meters the whole node, of the parts that are metered."""
    if board.partly:
        return Stat("session", DASH, "not seen from its beginning")
    node_j = total_j([one for one in board.sums if one.channel.kind_of_domain == "node"][:1])
    parts_j = total_j([one for one in board.sums if one.channel.domain in board.parts])
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


def _cost(board: LiveBoard) -> Stat:
    """Where a drain runs beside training, what it costs training is not metered: then the rest is a
    lower bound."""
    totals, seen = board.account.totals, board.account.seen.values()
    usd, least = totals.amounts["cost_usd"], totals.least["cost_usd"]
    if isnan(usd) and least > 0 and any((one.window.drain_s or 0.0) > 0 for one in seen):
        note = "what drains take from training is not known"
        return Stat("cost", f"at least {number(least)} USD", note)
    return Stat(
        "cost", _with(usd, "USD"), _why_not(board, "cost_usd") if isnan(usd) else _price(board)
    )


def _with(value: float, unit: str) -> str:
    return DASH if isnan(value) else f"{number(value)} {unit}"


def _price(board: LiveBoard) -> str:
    """Of a GPU-hour; empty where the scenario has none."""
    s = board.account.prices.scenario
    usd = nan if s is None else float(s.cluster.usd_per_gpu_s)
    return "" if isnan(usd) else quantity(usd, "usd_per_gpu_s")


def _grid(board: LiveBoard) -> str:
    s = board.account.prices.scenario
    kg = nan if s is None else float(s.site.kgco2e_per_j)
    return "" if isnan(kg) else quantity(kg, "kgco2e_per_j")


def _why_not(board: LiveBoard, asked: LineField) -> str:
    """Why a total is a dash, in a few words; empty where it is none."""
    totals, prices, machine = (
        board.account.totals,
        board.account.prices,
        board.account.prices.machine,
    )
    known = totals.least[asked] if asked == "gpu_s" else totals.amounts[asked]
    if not isnan(known):
        return ""
    if prices.problem:
        return "the scenario cannot be used"
    if not totals.saves:
        return _why_none(board)
    seen = board.account.seen.values()
    stalls = [one.window.stall_s for one in seen if one.contents.of != "load"]
    if asked in ("gpu_s", "cost_usd") and machine is not None and isnan(machine.gpus):
        return "nothing says how many GPUs"
    if stalls and all(stall is None for stall in stalls):
        return "not known how long training stood"
    if prices.scenario is not None:
        if asked == "cost_usd" and not _price(board):
            return "the scenario has no price of a GPU-hour"
        if asked == "location_kgco2e" and not _grid(board):
            return "the scenario has no grid factor"
    waits = [totals.lacking[name] for name in totals.lacking if name in ("gpu_wait", "host_wait")]
    return reason(waits[0][0]) if waits else ""


def _why_none(board: LiveBoard) -> str:
    if not board.book.entries:
        return "no checkpoint yet"
    over = sum(not entry.open for entry in board.book.entries)
    if not board.waiting:
        return "not evaluated yet"
    return f"evaluating {count(float(over - board.waiting + 1))} of {count(float(over))} ..."


def _last(board: LiveBoard) -> Stat:
    saves = (entry for entry in reversed(board.book.entries) if not entry.is_load)
    last = next((entry for entry in saves if not entry.open), None)
    if last is None:
        return Stat("last checkpoint", DASH, "under way" if board.book.open else "none yet")
    (window, what), name = last.best, f"#{last.number}"
    if what.error:
        return Stat("last checkpoint", f"{name} failed", what.error, "bad")
    safe, stall = safe_s(window, what), window.stall_s
    told = [text for text in (size(what.bytes), rate(rate_of(window, what))) if text != DASH]
    if safe is None:
        note = "  ".join((*told, "not known when safe"))
        held_up = "" if stall is None else f"  held up {duration(stall)}"
        return Stat("last checkpoint", name + held_up, note)
    if board.powerless:
        return Stat("safe after", duration(safe), "  ".join((name, *told)))
    return Stat("last checkpoint", f"{name}  {duration(safe)}", "  ".join(told))


def reason(code: str) -> str:
    """Codes of readings that are missing are in small letters, and are all the same to whoever
    looks on."""
    return why_text("NO_READING" if code == code.lower() else code)
