"""Opening a source for the live screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.source import Start

if TYPE_CHECKING:
    from ckptcost.first.tui.live.reading import LiveSource


def own(start: Start, desk: Desk) -> LiveSource:
    """Record here: a command, a process, a folder, or the machine alone. Raises InputError for what
    cannot be meant."""
    from ckptcost.first.tui.live.own import Own

    return Own(start, desk)


def demo(
    desk: Desk,
    *,
    gpus: int = 8,
    history_s: float = 150.0,
    threaded: bool = True,
    clock: Callable[[], float] | None = None,
    kept: bool = True,
) -> LiveSource:
    """A simulated machine; `clock` (monotonic seconds) is for tests. `kept`: in a folder that goes
    with it, so that its checkpoints can be opened like those of a recording."""
    import shutil
    import tempfile
    import weakref

    from ckptcost.first.tui.live.simulated import Simulated, plan_of

    folder = Path(tempfile.mkdtemp(prefix="ckptcost-demo-")) if kept else None
    source = Simulated(
        desk,
        plan_of(gpus),
        history_s=history_s,
        threaded=threaded,
        clock=clock,
        directory=None if folder is None else folder / "demo",
    )
    if folder is not None:
        weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    return source


def replay(
    run: str,
    desk: Desk,
    *,
    threaded: bool = True,
    clock: Callable[[], float] | None = None,
) -> LiveSource:
    """A recorded run, by path, id or `last`. Raises InputError where there is none."""
    from ckptcost.first.tui.live.replay import Replay

    return Replay(run, desk, threaded=threaded, clock=clock)


def followed(run: str, desk: Desk) -> LiveSource:
    """A run that another process is writing."""
    from ckptcost.first.tui.live.followed import Followed

    return Followed(run, desk)


def learn_baseline(
    meters: str,
    stopped: Callable[[], bool],
    told: Callable[[str], None],
    for_s: float = 30.0,
) -> str:
    """The idle power of this machine, learned while nothing else runs. `told`: a
    sentence. Returns what was learned.

    Raises CkptcostError where it is not idle, nothing is metered, or somebody stopped it; then
    nothing is kept.
    """
    import time

    from ckptcost.first.errors import CkptcostError
    from ckptcost.first.jobs.measure import learn
    from ckptcost.first.meters.found import Wanted
    from ckptcost.first.present.amounts import amount, duration

    began_s = time.monotonic()

    def tell(_: object) -> None:
        if stopped():
            raise CkptcostError("stopped; nothing was kept")
        passed_s = min(time.monotonic() - began_s, for_s)
        far = f"{duration(round(passed_s))} of {duration(for_s)}"
        told(f"measuring idle power, {far}")

    told("looking for meters")
    learned = learn(meters, Wanted(), for_s, tell=tell)
    parts = [domain for domain in learned.measured.energies.parts if domain in learned.idle.domains]
    watts = sum(learned.idle.domains[domain].power_w for domain in parts)
    nowhere = "of a simulated machine, so nothing is kept"
    kept = nowhere if learned.file is None else "kept for this machine"
    return f"idle power {amount(watts, 'w')} over {len(parts)} metered parts; {kept}"
