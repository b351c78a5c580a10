"""A process that probes, to be killed, interrupted, left without permission or refused by the
kernel: see what the tests hand to it."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import time

from ckptcost.first.errors import CkptcostError
from ckptcost.first.savers.base import SaverSettings
from ckptcost.first.savers.buffered import Posix
from ckptcost.first.savers.direct import Direct
from ckptcost.first.savers.place import SavePlace
from ckptcost.first.savers.shapes import shape_of

SAVERS = {"direct": Direct, "posix": Posix}
_NUMBERS = {
    "x86_64": {
        "pwrite64": 18,
        "fsync": 74,
        "openat": 257,
        "preadv2": 327,
        "readv": 19,
        "cachestat": 451,
        "flock": 73,
    },
    "aarch64": {
        "pwrite64": 68,
        "fsync": 82,
        "openat": 56,
        "preadv2": 286,
        "readv": 65,
        "cachestat": 451,
        "flock": 32,
    },
}


def refuse(call: str, error: int, flag: int = 0) -> None:
    """From now on the kernel answers this call with an error, by a seccomp filter; with `flag`,
    only where its third argument has it."""
    number = _NUMBERS[platform.machine()][call]
    load, equal, has, give = 0x20, 0x15, 0x45, 0x06
    program = [(load, 0, 0, 0), (equal, 0, 3 if flag else 1, number)]
    program += [(load, 0, 0, 32), (has, 0, 1, flag)] if flag else []
    program += [(give, 0, 0, 0x00050000 | error), (give, 0, 0, 0x7FFF0000)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    head = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program), ctypes.addressof(text))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    if libc.prctl(38, one, none, none, none) or libc.prctl(22, ctypes.c_ulong(2), head, none, none):
        print("no seccomp", flush=True)
        sys.exit(77)


def hold(directory: str) -> None:
    """A place with half a save in it, until killed."""
    with SavePlace(directory) as place:
        with place.saving(1, 0) as save:
            os.close(save.create("weights-00000"))
            save.commit()
        with place.saving(2, 0) as save:
            os.close(save.create("weights-00000"))
            assert place._janitor is not None
            print(place.name, place._janitor.pid, flush=True)
            time.sleep(60)


def save_on(directory: str, saver: str, size: str) -> None:
    """Saves for ever."""
    engine, shape = SAVERS[saver](), shape_of(int(size), 2)
    with SavePlace(directory) as place:
        print(place.name, flush=True)
        for number in range(10**6):
            engine.save(place, shape, SaverSettings(), number)
            place.remove(number)


def save_once(directory: str, saver: str, size: str, *refusals: str) -> None:
    """Saves once; then the calls in `refusals` (name:errno or name:errno:flag) begin to fail, and
    saves and loads again."""
    shape, number = shape_of(int(size), 2), 0
    with SavePlace(directory) as place:
        try:
            for number in range(2):
                SAVERS[saver]().save(place, shape, SaverSettings(depth=4), number)
                if number == 0:
                    for call, *words in (refusal.split(":") for refusal in refusals):
                        refuse(call, *map(int, words))
            io = SAVERS[saver]().load(place, shape, SaverSettings(depth=4), number)
            print("cached", io.cached_bytes, *io.notes)
        except CkptcostError as error:
            print(type(error).__name__, error.exit_code, error)
        print("saves", *sorted(os.listdir(place.fd)), flush=True)
    print("left", *os.listdir(directory), flush=True)


def try_place(directory: str, size: str, uid: str = "") -> None:
    """What a place says, by another user if asked; from inside, since that user may not get
    there."""
    os.chdir(directory)
    if uid:
        os.setresuid(int(uid), int(uid), int(uid))
    try:
        with SavePlace(".", int(size)) as place:
            print("made", *place.notes)
    except CkptcostError as error:
        print(type(error).__name__, error.exit_code, error)
    print("left", *os.listdir("."), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
