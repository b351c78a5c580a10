"""One meter a node: the ranks of a job agree on who reads, through a lock that the kernel gives
back when its holder dies.

The lock is a record lock (`fcntl`) on a file in a directory of this node and user, never on the
run's directory, which may be on NFS. A record lock belongs to a process: a forked data loader does
not carry it on after a `kill -9` of its parent, as it would with `flock`. The price is that one
process could take it twice; a list of what this process holds prevents that.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.errors import OutputError
from ckptcost.first.runs.header import host_name

RUN_ID = "CKPTCOST_RUN_ID"
"""what a user gives to all tasks of a run"""
_LOCAL_RANKS = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PMI_LOCAL_RANK",
    "SLURM_LOCALID",
)
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
"""Slurm's last: a batch script has them too, all 0, and what its mpirun starts inherits them"""
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
"""beside each of those: how many tasks there are"""
_LEFT_S = 5.0
"""after an orderly end others wait so long: at the end of a job all ranks stop within seconds, and
none should begin anew"""
_held: dict[str, int] = {}
"""lock files of this process, with the process they belong to: a forked child inherits the
dictionary, not the lock"""


def _first_number(names: tuple[str, ...], environ: Mapping[str, str]) -> int | None:
    for name in names:
        if (text := environ.get(name, "")).isdigit():
            return int(text)
    return None


def local_rank(environ: Mapping[str, str] = os.environ) -> int:
    """The rank within the node; 0 where no launcher says one."""
    return _first_number(_LOCAL_RANKS, environ) or 0


def global_rank(environ: Mapping[str, str] = os.environ) -> int:
    found = _first_number(_RANKS, environ)
    return local_rank(environ) if found is None else found


def job_run_id(environ: Mapping[str, str] = os.environ) -> str:
    """An id that all ranks of a job make alike without talking; empty where the launcher gives no
    name to the job.

    >>> job_run_id({"SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0"}) == job_run_id(
    ...     {"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "17"}
    ... )
    True
    """
    if given := environ.get(RUN_ID, ""):
        return given
    for names in (
        (
            "OMPI_MCA_orte_precondition_transports",
            "PMIX_NAMESPACE",
        ),  # a random number of each mpirun, and the same on all its nodes
        ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
        ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"),
        ("PMIX_NAMESPACE",),
    ):
        if environ.get(names[0], "none") != "none":
            said = "\0".join(f"{name}={environ.get(name, '')}" for name in names)
            return hashlib.sha256(said.encode()).hexdigest()[:32]
    return ""


class Task(NamedTuple):
    """One of the processes that a launcher started for a job, in which each may have a recorder
    around it."""

    run: str
    name: str
    """of the job, for people"""
    rank: int
    local: int | None
    """the rank within the node; None where the launcher does not say it"""


def task_of(environ: Mapping[str, str] = os.environ) -> Task | None:
    """None: alone, or one of several of which nobody says whose they are; then each is for itself.

    >>> task_of(
    ...     {
    ...         "SLURM_JOB_ID": "17",
    ...         "SLURM_STEP_ID": "0",
    ...         "SLURM_PROCID": "3",
    ...         "SLURM_LOCALID": "1",
    ...         "SLURM_STEP_NUM_TASKS": "4",
    ...     }
    ... )[1:]
    ('slurm-17', 3, 1)
    >>> task_of(
    ...     {"SLURM_JOB_ID": "17", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "4"}
    ... )  # the batch script itself
    """
    run = job_run_id(environ)
    for rank_name, size_name in zip(_RANKS, _SIZES, strict=True):
        rank, size = _first_number((rank_name,), environ), _first_number((size_name,), environ)
        if rank is None or size is None:
            continue
        if not run or size < 2:
            return (
                None  # of the innermost launcher: what one further out says is about its own tasks
            )
        slurm = environ.get("SLURM_JOB_ID", "")
        name = environ.get("CKPTCOST_JOB", "") or (f"slurm-{slurm}" if slurm else "job")
        return Task(run, name, rank, _first_number(_LOCAL_RANKS, environ))
    return None


def lock_directory(environ: Mapping[str, str] = os.environ, tmp: Path = Path("/tmp")) -> Path:
    """A directory of this node that only this user can write to. Raises OutputError where somebody
    else made it."""
    uid = os.getuid()
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime and _is_ours(Path(runtime), uid):
        return Path(runtime)
    directory = tmp / f"ckptcost-{uid}"
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise OutputError(
            f"{directory}: cannot make the directory for locks: {error.strerror}"
        ) from error
    if not _is_ours(directory, uid):
        raise OutputError(
            f"{directory} is not a directory that only you can write to. Remove it, or set"
            " XDG_RUNTIME_DIR"
        )
    return directory


def _is_ours(directory: Path, uid: int) -> bool:
    try:
        found = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o077


class Seat:
    """The right to read the meters of this host in this run."""

    def __init__(self, run: str, host: str = "", directory: Path | None = None) -> None:
        named = hashlib.sha256(f"{host or host_name()}\0{run}".encode()).hexdigest()[:32]
        self.path = (directory or lock_directory()) / f"ckptcost-{named}.lock"
        self._fd = -1
        self._pid = 0

    @property
    def held(self) -> bool:
        """By this process: a forked child does not hold it."""
        return self._fd >= 0 and self._pid == os.getpid()

    def take(self, anew: bool = False) -> bool:
        """Tries, without waiting. About 30 us. `anew`: by who just began, such as the next command
        of the same job: whoever left a moment ago is no sign that all are ending."""
        if self.held:
            return True
        name = str(self.path)
        if _held.get(name) == os.getpid():
            # by another seat of this process; even opening the file and closing it would give that
            # one's lock away
            return False
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there = os.stat(name)
            mine = os.fstat(fd)
            if (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino) or (
                _left_s(fd) < _LEFT_S and not anew
            ):
                os.close(fd)  # somebody cleared the directory; or left a moment ago
                return False
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.ENOENT):
                return False
            raise
        self._write(fd, f"held by {os.getpid()}\n")
        self._fd, self._pid = fd, os.getpid()
        _held[name] = self._pid
        return True

    def refresh(self) -> None:
        """Now and then, so that what clears old files from temporary directories leaves this
        one."""
        if self.held:
            os.utime(self._fd)

    def leave(self) -> None:
        """In an orderly way; a killed process leaves by itself and at once."""
        if self.held:
            self._write(self._fd, f"left {time.monotonic_ns()}\n")
            _held.pop(str(self.path), None)
            os.close(self._fd)
        self._fd = -1

    @staticmethod
    def _write(fd: int, text: str) -> None:
        os.ftruncate(fd, 0)
        os.pwrite(fd, text.encode(), 0)


def _left_s(fd: int) -> float:
    """How long ago somebody left in an orderly way; endless where nobody did."""
    words = os.pread(fd, 64, 0).split()
    if len(words) != 2 or words[0] != b"left" or not words[1].isdigit():
        return float("inf")
    ago_s = (time.monotonic_ns() - int(words[1])) * 1e-9
    return ago_s if ago_s >= 0.0 else float("inf")  # of a boot before this one
