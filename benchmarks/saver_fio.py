"""Our engines beside fio on the same file system: the same sizes, blocks and depth, files made anew
each round and fsynced, in turns.

Our rate is bytes over begin to durable: it holds the making of content that nothing can compress,
and the fsync of the directories. fio writes the same buffers again and again, and its rate ends
with the fsync of its files. Reads are of files just written; what a virtual machine's host keeps in
memory serves both alike. Our buffers are in huge pages, which can double a rate where a request of
4 MiB would be a thousand small pieces; so fio is judged with huge pages too (a setting of glibc's),
and shown as it comes besides, and with content as new as ours. Through the page cache each writes
twice and the second counts: a host that took free pages back gives them again at a quarter of the
rate.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from measure import digits, ratios, shown, table

from ckptcost.first.errors import CkptcostError
from ckptcost.first.savers.base import Io, Saver, SaverSettings, Shape
from ckptcost.first.savers.blocks import buffers
from ckptcost.first.savers.buffered import Posix
from ckptcost.first.savers.content import CHUNK_BYTES, Content
from ckptcost.first.savers.direct import Direct
from ckptcost.first.savers.place import SavePlace
from ckptcost.first.savers.shapes import shape_of

SIZE_BYTES = 2 << 30
SETTINGS = SaverSettings()
CONTENT_BYTES = 1 << 30
LEAST = 0.95
"""of fio's rate"""
NO_FIO = "Not measured: fio is not installed.\n"
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
FIO_DIRECT = ("--direct=1", f"--bs={SETTINGS.block_bytes}")


class Case(NamedTuple):
    name: str
    saver: Saver
    shape: Shape
    fio: tuple[str, ...]
    environment: dict[str, str] = HUGE
    twice: bool = False


def cases() -> list[Case]:
    one, four = shape_of(SIZE_BYTES, 1, files=1), shape_of(SIZE_BYTES, 4, files=4)
    depth = SETTINGS.depth
    libaio = (*FIO_DIRECT, "--ioengine=libaio", f"--iodepth={depth}", "--numjobs=1")
    many = (*FIO_DIRECT, "--ioengine=libaio", f"--iodepth={depth // 4}", "--numjobs=4")
    sync = ("--direct=0", f"--bs={SETTINGS.block_bytes}", "--ioengine=sync", "--numjobs=1")
    return [
        Case("direct, 1 writer", Direct(), one, libaio),
        Case(
            "direct, 1 writer, fio with new content for each block",
            Direct(),
            one,
            ("--refill_buffers=1", *libaio),
        ),
        Case("direct, 4 writers", Direct(), four, many),
        Case("direct, 1 writer, fio without huge pages", Direct(), one, libaio, {}),
        Case("posix, 1 writer", Posix(), one, sync, twice=True),
    ]


def cpu_s() -> float:
    """Of this process and of children that have ended."""
    return sum(os.times()[:4])


class Ran(NamedTuple):
    write: float
    """bytes a second"""
    read: float
    write_cpu: float
    """processor seconds for a gigabyte"""
    read_cpu: float


def fio(case: Case, folder: Path) -> Ran:
    jobs = int(case.fio[-1].rpartition("=")[2])
    common = [
        "fio",
        "--name=f",
        f"--directory={folder}",
        f"--size={SIZE_BYTES // jobs}",
        "--group_reporting",
        "--end_fsync=1",
        "--output-format=json",
        "--invalidate=1",
        *case.fio,
    ]

    def timed(way: str) -> tuple[float, float]:
        before = cpu_s()
        run = subprocess.run(
            [*common, f"--rw={way}"],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | case.environment,
        )
        said = json.loads(run.stdout)["jobs"][0][way]
        assert said["io_bytes"] == SIZE_BYTES // jobs * jobs
        return SIZE_BYTES / (said["runtime"] * 1e-3), (cpu_s() - before) / SIZE_BYTES * 1e9

    def remove() -> None:
        """And wait, as ours does: the freeing of blocks would fall into whatever comes next."""
        for path in folder.iterdir():
            path.unlink()
        fd = os.open(folder, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    if case.twice:
        timed("write")
        remove()
    write, read = timed("write"), timed("read")
    remove()
    return Ran(write[0], read[0], write[1], read[1])


def ours(case: Case, place: SavePlace, number: int) -> Ran:
    def timed(act: Callable[[SavePlace, Shape, SaverSettings, int], Io]) -> tuple[float, float]:
        before = cpu_s()
        io = act(place, case.shape, SETTINGS, number)
        for note in io.notes:
            print(f"{case.name}: {note}")
        return io.bytes_per_s, (cpu_s() - before) / SIZE_BYTES * 1e9

    if case.twice:
        timed(case.saver.save)
        place.remove(number)
    write, read = timed(case.saver.save), timed(case.saver.load)
    place.remove(number)
    return Ran(write[0], read[0], write[1], read[1])


def content() -> float:
    """Bytes a second on one core."""
    made, memory = Content(0, 0), buffers(SETTINGS.block_bytes, SETTINGS.depth)
    start = time.perf_counter()
    for number in range(CONTENT_BYTES // SETTINGS.block_bytes):
        made.fill(memory[number % SETTINGS.depth], "weights-00000", number * SETTINGS.block_bytes)
    return CONTENT_BYTES / (time.perf_counter() - start)


def kept(ratio: float) -> str:
    return "met" if ratio >= LEAST else f"**miss**, {ratio:.2f}"


def measure(rounds: int = 9) -> str:
    rounds = max(rounds // 2 + 1, 3)
    if shutil.which("fio") is None:
        return NO_FIO
    found: dict[str, list[tuple[Ran, Ran]]] = {case.name: [] for case in cases()}
    rates = [content() for _ in range(rounds)]
    with tempfile.TemporaryDirectory() as folder:
        beside = Path(folder, "fio")
        beside.mkdir()
        try:
            with SavePlace(folder, SIZE_BYTES) as place:
                for number in range(-1, rounds):
                    for case in cases():
                        if number % 2:
                            of_fio, of_us = fio(case, beside), ours(case, place, number + 1)
                        else:
                            of_us, of_fio = ours(case, place, number + 1), fio(case, beside)
                        if number >= 0:
                            found[case.name].append((of_us, of_fio))
        except CkptcostError as error:
            return f"Not measured: {error}\n"
    rows, costs = [], []
    for name, rans in found.items():
        for way in ("write", "read"):
            us, them = (
                [getattr(ran[0], way) for ran in rans],
                [getattr(ran[1], way) for ran in rans],
            )
            share, medians = ratios(us, them), [shown(of, "GB/s")[0] for of in (us, them)]
            verdict = kept(statistics.median(share)) if name.startswith("direct") else ""
            rows.append((f"{name}: {way}", *medians, *shown(share, "x"), verdict))
            spent = [[getattr(ran[side], f"{way}_cpu") for ran in rans] for side in (0, 1)]
            costs.append(
                (f"{name}: {way}", *(f"{digits(statistics.median(of) * 1e3)} ms" for of in spent))
            )
    said = (
        f"{len(rates)} rounds of {SIZE_BYTES >> 30} GiB, blocks of {SETTINGS.block_bytes >> 20}"
        f" MiB, {SETTINGS.depth} in flight.\n\n"
    )
    said += table(
        ("what", "ours", "fio", "ours over fio", "quartiles", f"at least {LEAST:g}"), rows
    )
    said += "\n" + table(
        ("processor time for a gigabyte, fio's start included", "ours", "fio"), costs
    )
    made, spread = shown(rates, "GB/s")
    return (
        said + f"\nContent is made at {made} on one core ({spread}), {CHUNK_BYTES >> 20} MiB at a"
        " time.\n"
    )


if __name__ == "__main__":
    print(measure())
