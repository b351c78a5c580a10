"""What a storage refuses, in our words."""

from __future__ import annotations

import errno

from ckptcost.errors import OutputError

_WORDS = {
    errno.ENOSPC: "no space is left on the file system",
    errno.EDQUOT: "the quota of this user or project is used up",
    errno.EIO: "the storage reports an input/output error",
    errno.EROFS: "the file system is mounted read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "it is gone; somebody removed it meanwhile",
    errno.ESTALE: "it is gone on the server",
    errno.EFBIG: "a file would become larger than allowed (ulimit -f, or the file system's limit)",
    errno.EMFILE: "too many open files (ulimit -n)",
    errno.ENOMEM: "no memory is left",
}
_REMEDIES = {
    errno.ENOSPC: "Give a smaller size, or another directory",
    errno.EDQUOT: "Give a smaller size, or another directory",
    errno.EIO: "The kernel's log (dmesg) says more",
}


def refused(error: OSError, where: str, doing: str = "") -> OutputError:
    """`where` is the directory as the user knows it; the file in it comes from the error."""
    name = error.filename if isinstance(error.filename, str) and "/" not in error.filename else ""
    place = f"{where}: {name}" if name else where
    words = _WORDS.get(error.errno or 0, error.strerror or str(error) or type(error).__name__)
    text = f"{place}: {doing}: {words}" if doing else f"{place}: {words}"
    remedy = _REMEDIES.get(error.errno or 0, "")
    return OutputError(f"{text}. {remedy}" if remedy else text)
