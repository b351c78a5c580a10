"""One checkpoint, marked from inside the job: `with ckptcost.window("step 1000", path=...)`, a
decorator, or `begin` and its marks.

Nothing here raises into the job. Where nobody listens it costs less than 2 us, else about 20 us a
mark.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable
from typing import Any, TypeVar

from ckptcost.first.hooks.handles import NOTHING, Handle, open_window
from ckptcost.first.hooks.labels import label_of, numbered_label

C = TypeVar("C", bound=Callable[..., Any])


def begin(
    label: object = None,
    path: object = None,
    sync: bool | None = None,
    *,
    separate: bool = False,
    how: str = "",
    of: str = "",
) -> Handle:
    """A checkpoint begins. `path` is where it goes, a file or folder; `sync=True` says that its
    writer calls fsync before it is done.

    Inside `with window(...)` it is part of that; two of these that overlap are two checkpoints,
    since an end may have been forgotten.

    >>> save = begin("step 1000", path="checkpoints/step_1000.pt")
    >>> save.returned()
    """
    return open_window(label, path, sync, separate, how, of, True)


class window:  # noqa: N801  # it reads as a word
    """`with window("step 1000") as save:`, or `@window("save")`, which numbers the label.

    >>> with window("step 1000", path="checkpoints/step_1000.pt"):
    ...     pass
    """

    __slots__ = ("_handles", "_how", "_label", "_of", "_path", "_separate", "_sync")

    def __init__(
        self,
        label: object = None,
        path: object = None,
        sync: bool | None = None,
        *,
        separate: bool = False,
        how: str = "",
        of: str = "",
    ) -> None:
        self._label, self._path, self._sync, self._separate, self._how, self._of = (
            label,
            path,
            sync,
            separate,
            how,
            of,
        )
        self._handles: list[tuple[int, Handle]] = []

    def __enter__(self) -> Handle:
        handle = open_window(
            self._label, self._path, self._sync, self._separate, self._how, self._of, False
        )
        if handle is not NOTHING:
            self._handles.append((get_ident(), handle))
        return handle

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        if not self._handles:
            return
        handle = self._mine()
        if kind is None:
            handle.returned()
        else:
            handle.failed(kind)

    def _mine(self) -> Handle:
        """The one that this thread opened last; the same object may be used in several."""
        mine = get_ident()
        for place in range(len(self._handles) - 1, -1, -1):
            if self._handles[place][0] == mine:
                return self._handles.pop(place)[1]
        return NOTHING

    def _numbered(self) -> window:
        label = numbered_label("save" if self._label is None else label_of(self._label))
        return window(
            label, self._path, self._sync, separate=self._separate, how=self._how, of=self._of
        )

    def __call__(self, function: C) -> C:
        """Each call of the function is a checkpoint."""
        import functools
        import inspect

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def waits(*args: Any, **kwargs: Any) -> Any:
                with self._numbered():
                    return await function(*args, **kwargs)

            return waits  # type: ignore[return-value]

        @functools.wraps(function)
        def calls(*args: Any, **kwargs: Any) -> Any:
            with self._numbered():
                return function(*args, **kwargs)

        return calls  # type: ignore[return-value]
