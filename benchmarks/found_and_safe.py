"""What `ckptcost run` says of jobs that save as frameworks do, on file systems over a device of
known speed: into docs/accuracy.md.

    python benchmarks/found_and_safe.py [--libraries FOLDER] [--write]

Needs root (a loop device that the kernel holds to 40 MB/s), xfsprogs, btrfs-progs and bindfs; a
quarter of an hour. FOLDER holds frameworks that are not installed here (`pip install --target`); a
job whose framework is missing is left out.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "first" / "storage"))

from against_truth import Ran, ran  # noqa: E402
from throttled import MAKERS, overlaid, throttled, through_fuse, why_not  # noqa: E402

from ckptcost.first.present.amounts import duration  # noqa: E402
from ckptcost.first.present.table import markdown  # noqa: E402

PAGE = ROOT / "docs" / "accuracy.md"
BEGIN, END = "<!-- found: written by benchmarks/found_and_safe.py -->", "<!-- end of found -->"
RATE = 40_000_000
KINDS = ("ext4", "xfs", "btrfs", "overlay", "tmpfs", "fuse")
SYNCED_TOO = ("ext4", "overlay")
"""where a job that calls fsync is tried as well"""
JOBS = {
    "torch-save": "nanoGPT: one file, written over",
    "renamed": "one file, renamed",
    "trainer": "Hugging Face Trainer, keeps 2",
    "lightning": "Lightning",
    "accelerate": "Accelerate",
    "dcp": "DCP",
    "dcp-async": "DCP, asynchronous",
    "folder-renamed": "Orbax-like: 16 files, folder renamed",
    "hdf5": "HDF5, appended in place",
    "staged": "staged: written, sent, removed",
}
HEADER = ["file system", "fsync", "found", "bytes", "begin", "stall", "safe", "never early"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--libraries", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--kinds", default=",".join(KINDS))
    words = parser.parse_args()
    if reason := why_not():
        sys.exit(reason)
    rows: dict[str, list[list[str]]] = {}
    for kind in words.kinds.split(","):
        for synced in (False, True) if kind in SYNCED_TOO else (False,):
            for job in words.jobs.split(","):
                with tempfile.TemporaryDirectory() as scratch:
                    try:
                        row = tried(job, kind, synced, Path(scratch), words.libraries)
                    except AssertionError as error:
                        print(f"{job} on {kind}: {str(error).strip()[-200:]}", file=sys.stderr)
                        continue
                print(job, *row, sep=" | ", flush=True)
                rows.setdefault(job, []).append(row)
    if words.write:
        write("\n".join(sections(rows)))


def tried(job: str, kind: str, synced: bool, scratch: Path, libraries: str) -> list[str]:
    with ExitStack() as stack:
        device: Path | None = None
        if kind == "tmpfs":
            folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
            stack.callback(shutil.rmtree, folder)
        else:
            own = kind if kind in MAKERS else "ext4"
            device = folder = stack.enter_context(throttled(scratch, RATE, kind=own))
            if kind in ("overlay", "fuse"):
                over = overlaid if kind == "overlay" else through_fuse
                folder = stack.enter_context(over(device))
        words = ["--saves", "3", "--rest", "2", *(["--sync"] if synced else [])]
        found = ran(job, folder, scratch, device, *words, path=libraries)
    return [kind, "yes" if synced else "no", *told(found)]


def told(found: Ran) -> list[str]:
    """Found, and the mean errors of what was said; what is truly so without a sign, what is late
    with a plus."""
    saves = [save for save in found.saves if save.is_found]
    more = f", {found.others} other" if found.others else ""
    sizes = [save.said_bytes / save.bytes - 1.0 for save in saves if save.said_bytes is not None]
    begins_s = [s.said_begin_s - s.begin_s for s in saves if s.said_begin_s is not None]
    stalls_s = [s.said_stall_s - s.stall_s for s in saves if s.said_stall_s is not None]
    lates_s = [
        s.said_safe_s - s.safe_s
        for s in saves
        if s.said_safe_s is not None and s.safe_s is not None
    ]
    unknown = sorted({s.said_why for s in saves if s.said_safe_s is None and s.said_why})
    early = sum(
        1
        for s in saves
        if s.said_safe_s is not None and (s.safe_s is None or s.said_safe_s < s.safe_s - 0.1)
    )
    return [
        f"{len(saves)} of {len(found.saves)}{more}",
        f"{100 * fmean(sizes):+.2g} %" if sizes else "not said",
        signed(begins_s),
        signed(stalls_s),
        signed(lates_s) if lates_s else f"unknown: {', '.join(unknown) or 'not said'}",
        "yes" if not early else f"{early} too early",
    ]


def signed(errors_s: list[float]) -> str:
    if not errors_s:
        return "unknown"
    mean_s = fmean(errors_s)
    return f"{'+' if mean_s >= 0 else '-'}{duration(abs(mean_s))}"


def sections(rows: dict[str, list[list[str]]]) -> list[str]:
    said = []
    for job, of_job in rows.items():
        said += [f"**{JOBS[job]}**", "", *markdown(HEADER, of_job, left=len(HEADER)), ""]
    return said


def write(said: str) -> None:
    page = PAGE.read_text("utf-8")
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:begin]}\n\n{said}\n{page[end:]}", "utf-8")


if __name__ == "__main__":
    main()
