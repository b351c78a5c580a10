"""What is told of a group of files, and under which label: the same for all that is told of a
checkpoint, and nobody else's."""

from __future__ import annotations

from ckptcost.watch.groups import CheckpointStep, FileGroup
from ckptcost.watch.names import CONTAINER, PLAIN, final, numbers_of


class StepLog:
    """Keeps the labels that were given; `out` is what is to be told."""

    def __init__(self, small_bytes: int) -> None:
        self._small = small_bytes
        self._labels: dict[str, str] = {}
        self.out: list[CheckpointStep] = []

    def label_of(self, group: FileGroup, *, sure: bool) -> str:
        """Empty as long as nothing is known that would do, unless it must be said now."""
        data = list(group.data(self._small))
        names = [path.rpartition("/")[2] for path in data]
        above = group.key.rpartition("/")[2]
        if group.is_unit:
            base = final(above)
            return self._unique(base or above, group.key) if base or sure else ""
        base = numbers_of(final(names[0])).cut
        if not final(names[0]) and not sure:
            return ""
        if len(names) > 1 and base == final(names[0]):
            common = names[0]
            for name in names:
                common = common[
                    : next(
                        (at for at, (a, b) in enumerate(zip(common, name, strict=False)) if a != b),
                        min(len(common), len(name)),
                    )
                ]
            base = common.rstrip("-_=. 0") if len(common) > 2 else above or base
        if above and not CONTAINER.fullmatch(above) and PLAIN.fullmatch(base.partition(".")[0]):
            base = above
        base = base or above or names[0]
        return self._unique(base, f"{group.key}/{base}" if group.key else base)

    def _unique(self, base: str, key: str) -> str:
        """Two places get two names, as long as their paths differ; then they are counted."""
        label = base if self._labels.get(base, key) == key else key
        count, name = 1, label
        while name in self._labels and (count == 1 or name in self._labels):
            count += 1
            name = f"{label} ({count})"
        self._labels[name] = key
        return name

    def begin(self, group: FileGroup, *, sure: bool) -> None:
        """Once, as soon as there is a label; `sure`: now, whatever is known."""
        if group.began:
            return
        group.label = group.label or self.label_of(group, sure=sure)
        if not group.label:
            return
        group.began = True
        begin = self._begin_of(group)
        if begin is not None:
            path = group.unit if group.is_unit else min(group.data(self._small))
            self.say(group, "begin", begin[0], path, begin[1])

    def _begin_of(self, group: FileGroup) -> tuple[int, str] | None:
        known = [
            (file.begin_ns, file.how)
            for file in group.data(self._small).values()
            if file.begin_ns is not None
        ]
        if not known:
            return None
        first = min(known)
        return (group.since_ns, first[1]) if group.is_unit and group.since_ns < first[0] else first

    def say(
        self,
        group: FileGroup,
        name: str,
        t_ns: int,
        path: str,
        how: str,
        error: str = "",
        since_ns: int = 0,
        paths: tuple[str, ...] = (),
    ) -> None:
        self.out.append(
            CheckpointStep(
                name,
                group.label,
                t_ns,
                path,
                group.bytes,
                len(group.files),
                how,
                error,
                since_ns,
                paths,
            )
        )

    def written(self, group: FileGroup) -> None:
        """The files since the last time, where data is among them."""
        self.begin(group, sure=True)
        paths = [path for path, file in group.files.items() if not file.told]
        data = group.data(self._small)
        if not any(path in data for path in paths):
            return
        for path in paths:
            group.files[path].told = True
        last = max((file.closed_ns or file.changed_ns, file.how) for file in data.values())
        first = min(
            (file.begin_ns if file.begin_ns is not None else file.changed_ns)
            for file in group.files.values()
        )
        path = group.unit if group.is_unit else max(data, key=lambda each: data[each].changed_ns)
        self.say(
            group,
            "written",
            last[0],
            path,
            last[1],
            since_ns=min(first, group.since_ns),
            paths=tuple(sorted(paths)),
        )
