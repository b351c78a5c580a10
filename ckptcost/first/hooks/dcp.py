"""torch.distributed.checkpoint with a window around each save: `dcp.save` and `dcp.async_save` in
their places, or `dcp.install()`.

FileSystemWriter calls fsync on every file unless it is made with `sync_files=False`; then the end
of the save is also the instant at which it is safe. Of other writers only the end of writing is
known.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from ckptcost.first.hooks.handles import Handle
from ckptcost.first.hooks.labels import base_of, path_of
from ckptcost.first.hooks.wrapping import SavePlan, around, original_of, put, take_back

_MOST_ITEMS = 200_000
"""of a checkpoint's metadata; adding up more would take tens of milliseconds of training"""


def save(*args: Any, **kwargs: Any) -> Any:
    """As torch.distributed.checkpoint.save."""
    from torch.distributed import checkpoint

    return around(original_of(checkpoint.save), _plan)(*args, **kwargs)


def async_save(*args: Any, **kwargs: Any) -> Any:
    """As torch.distributed.checkpoint.async_save: training goes on when it returns, the save is
    written when its future is done."""
    from torch.distributed import checkpoint

    return around(original_of(checkpoint.async_save), _async_plan)(*args, **kwargs)


def install() -> bool:
    """From now on for all who call `torch.distributed.checkpoint.save` and `.async_save` by these
    names, frameworks included.

    Not `torch.distributed.checkpoint.state_dict_saver.save`: the background thread of async_save
    calls that one.
    """
    try:
        from torch.distributed import checkpoint
    except ImportError:
        return False
    both = put(checkpoint, "save", _plan), put(checkpoint, "async_save", _async_plan)
    return all(both)


def uninstall() -> None:
    from torch.distributed import checkpoint

    take_back(checkpoint, "save")
    take_back(checkpoint, "async_save")


def _plan(*args: Any, **kwargs: Any) -> SavePlan:
    path, sync, group = _destination(**kwargs)

    def after(handle: Handle, metadata: Any) -> None:
        handle.written(*_amount(metadata, path, group))

    return SavePlan(base_of(path, "dcp save"), path, sync, "dcp", after)


def _async_plan(*args: Any, **kwargs: Any) -> SavePlan:
    path, sync, group = _destination(**kwargs)

    def after(handle: Handle, response: Any) -> None:
        """A future; or two of them, where copying the state goes on in the background as well."""
        staging = getattr(response, "staging_completion", None)
        if staging is None:
            handle.snapshotted()
        else:
            staging.add_done_callback(lambda _: handle.snapshotted())
        handle.follow(
            getattr(response, "upload_completion", response),
            sync,
            lambda done: _amount(done.result(), path, group),
        )

    return SavePlan(base_of(path, "dcp save"), path, None, "dcp", after)


def _destination(
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    **_: Any,
) -> tuple[str, bool | None, Any]:
    """Path, whether it is synced, and the group whose numbers the files carry."""
    given = checkpoint_id if checkpoint_id is not None else getattr(storage_writer, "path", None)
    path = path_of(given)
    return path, _syncs(storage_writer, path), None if no_dist else process_group


def _syncs(writer: Any, path: str) -> bool | None:
    if writer is None:
        return (
            True if os.path.isabs(path) else None
        )  # what torch makes itself for a path of this machine
    from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter

    if isinstance(writer, FileSystemWriter) and type(getattr(writer, "fs", None)) is FileSystem:
        return bool(writer.sync_files)
    return None


def _amount(metadata: Any, path: str, group: Any) -> tuple[int | None, int | None]:
    """Bytes and files of this rank's, from what the save returns: no folder is searched, which
    thousands of ranks would do at once."""
    stored = getattr(metadata, "storage_data", None)
    if not isinstance(stored, dict) or len(stored) > _MOST_ITEMS:
        return None, None
    rank, ranks = _place_in(group)
    own = "" if ranks == 1 else f"__{rank}_"
    pieces = [piece for piece in stored.values() if str(piece.relative_path).startswith(own)]
    if not pieces:
        return None, None
    files = {str(piece.relative_path) for piece in pieces}
    total = sum(int(piece.length) for piece in pieces)
    if rank == 0:
        with suppress(OSError):
            total += os.stat(os.path.join(path, ".metadata")).st_size
            files.add(".metadata")
    return total, len(files)


def _place_in(group: Any) -> tuple[int, int]:
    """Of this process: its rank, and how many there are."""
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(group), distributed.get_world_size(group)
    return 0, 1
