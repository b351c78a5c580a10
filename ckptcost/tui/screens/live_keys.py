"""What can be done on the live screen, and what its help says."""

from __future__ import annotations

from ckptcost.tui.commands import Command
from ckptcost.tui.live.source import Actions

ABOUT = (
    "Power of the GPUs, on it that of processors and memory, and what goes to storage, over one"
    " time axis. Where training is held up the area glows; a lighter ground is a save that drains"
    " while training goes on. The line across is the idle power, where it was learned (l on the"
    " start page). The sentence below and the list have joules at the node; energy, cost and CO2e"
    " above are of all checkpoints so far, at the facility, under the scenario of screen 1. A dash"
    " is not known, never zero, and a gap is a meter that did not answer. Drawing can be slower"
    " than measuring, and stops while another screen is seen: readings are kept all the same. Over"
    " SSH it draws once a second."
)
START = (
    Command(
        "live.measure",
        "M",
        "machine alone",
        "Measure this machine alone, without a job",
        "measure",
        1,
    ),
    Command(
        "live.demo",
        "d",
        "demo",
        "A made-up machine with 8 GPUs that saves once a minute",
        "demo",
        2,
    ),
    Command(
        "live.command", "c", "command", "Type a command to run and measure", "field('command')", 3
    ),
    Command("live.attach", "a", "attach", "Type the PID of a job that runs", "field('pid')", 4),
    Command(
        "live.watch", "w", "folder", "Type the folders that checkpoints go to", "field('watch')", 5
    ),
    Command(
        "live.processes", "P", "processes", "Choose among processes that hold a GPU", "processes"
    ),
    Command(
        "live.follow", "f", "follow", "Follow a recording that another process writes", "follow", 6
    ),
    Command(
        "live.baseline",
        "l",
        "baseline",
        "Learn the idle power of this machine: 30 s, nothing else may run",
        "baseline",
        7,
    ),
)
"""of the start page"""
BOARD = (
    Command(
        "live.pause",
        "space",
        "pause",
        "Stop drawing and go on; the recording goes on all the while",
        "pause",
        1,
    ),
    Command(
        "live.mark", "m", "mark", "Mark the begin of a checkpoint by hand, and its end", "mark", 2
    ),
    Command(
        "live.detail",
        "enter",
        "open",
        "The last checkpoint in full; in the list, the one that is chosen",
        "detail",
        2,
    ),
    Command("live.shorter", "left_square_bracket", "zoom in", "Show less time", "span(-1)", 3),
    Command("live.longer", "right_square_bracket", "zoom out", "Show more time", "span(1)", 10),
    Command(
        "live.faster",
        "plus,equals_sign",
        "faster",
        "Draw more often: up to 10 times a second",
        "rate(1)",
    ),
    Command("live.slower", "minus", "slower", "Draw less often", "rate(-1)"),
    Command(
        "live.gpus",
        "g",
        "per GPU",
        "A curve for each GPU, or all together; of many, those that differ most",
        "gpus",
        4,
    ),
    Command("live.lists", "v", "lists", "Next list: checkpoints, GPUs, meters, output", "lists", 7),
    Command(
        "live.preset",
        "p",
        "layout",
        "Next layout: overview, each GPU, checkpoints, figures alone",
        "preset",
        11,
    ),
    Command("live.traces", "t", "traces", "Other traces, where not all have room", "turn"),
    Command("live.output", "o", "output", "The last lines that the job printed", "output", 7),
    Command(
        "live.hold",
        "h",
        "hold",
        "Let the time of a replay or demo stand still, or go on",
        "hold",
        8,
    ),
    Command(
        "live.quicker",
        "greater_than_sign",
        "speed",
        "Let the time of a replay or demo run faster",
        "speed(1)",
        9,
    ),
    Command("live.calmer", "less_than_sign", "slower time", "Let it run slower", "speed(-1)"),
    Command("live.back", "comma", "back", "Go back a window's length in a replay", "seek(-1)"),
    Command("live.on", "full_stop", "on", "Go on by a window's length in a replay", "seek(1)"),
    Command(
        "live.stop",
        "R",
        "stop",
        "End the recording, and the command with it (killed after 10 s); asks first",
        "stop",
        6,
    ),
    Command("live.run", "r", "open the run", "What was recorded, in full", "open_run", 1),
    Command("live.new", "n", "new", "Back to the start page, for another recording", "new", 2),
)
"""while something is measured, or when it has ended"""
_ENDED = frozenset({"open_run", "new"})
_RUNNING = frozenset({"pause", "rate", "detail"})


def possible(action: str, can: Actions, over: bool) -> bool:
    """Whether an action of the board means something now."""
    known = {
        "mark": can.mark,
        "hold": can.pause,
        "speed": can.speed,
        "seek": can.seek,
        "stop": can.stop,
    }
    if action in known:
        return known[action] and not over
    return over if action in _ENDED else not over if action in _RUNNING else True
