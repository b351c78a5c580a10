"""Which files are one checkpoint, when it began, was written and committed: no I/O and no clock,
fed with events and with sizes.

Names say little for certain, so the rules rest on what a saver must do. A directory with a step in
its name is one checkpoint, whatever lies in it. Files side by side are one while they overlap or
follow within `gap_s`, unless their names count another step; a number that varies while files
overlap counts ranks. What is renamed stays what it was. Readers open files too: only what then
changes was a save.
"""

from __future__ import annotations

from collections.abc import Mapping

from ckptcost.watch.groups import File, Group, Opened, Rules, Stat, Step
from ckptcost.watch.inotify import FileEvent
from ckptcost.watch.names import (
    APPENDED,
    COMMIT,
    DATA,
    LITTLE,
    POINTER,
    another_rank,
    final,
    is_noise,
    same_step,
    unit_of,
)
from ckptcost.watch.telling import Telling

S = 1_000_000_000
CLOCK_NS = 20_000_000
JUST_NS = S
"""what was written no longer ago may be what the event tells of"""
"""file systems note times by a clock that ticks every 4 to 10 ms"""
LOOK_NS = 2 * S
"""a file that was opened and has not changed for so long is being read"""
MADE_NS = 30 * S
"""a directory made so long before its first file is where the save began"""
PAUSE_NS = 2 * S // 5
"""a file that may be added to and has not changed for so long may be at the end of a save"""
_MOST_READ = 512
_MOST_KNOWN = 100_000


class Grouping:
    """`event` and `read` put in, `tick` gives what is certain by then; `finish` at the end."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self._small = self.rules.small_bytes
        self.polled = False
        """files are looked at again and again, and their being still is told as a close"""
        self._groups: list[Group] = []
        self._of: dict[str, Group] = {}
        self._opened: dict[str, Opened] = {}
        self._made: dict[str, int] = {}
        self._known: dict[str, int] = {}
        self._left_out: set[str] = set()
        self._telling = Telling(self._small)
        self.paused: list[str] = []
        """files that may be written and are not closed: when they are safe is to be looked at from
        now on. Whoever takes them empties it"""
        self.still: dict[str, tuple[int, int]] = {}
        """files that may be open and written again, with size and mtime_ns: the next write is to be
        told as "resumed". Whoever takes them empties it"""
        self._awaited: set[str] = set()
        """those files: whoever opens one of them is a reader, until it is written"""

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(group.label for group in self._groups if group.began)

    @property
    def pending(self) -> int:
        """Groups, told or not: as long as there are any, `tick` has to come."""
        return len(self._groups)

    @property
    def writing(self) -> bool:
        """Some file has not been closed."""
        return any(group.is_open for group in self._groups)

    @property
    def likely(self) -> bool:
        """Signs of a checkpoint that is not told yet: a directory with a step in its name, a file
        that looks or grows like one."""
        return any(
            not group.began
            and (
                group.is_unit or group.bytes >= self._small or any(map(DATA.fullmatch, group.files))
            )
            for group in self._groups
        )

    def wanted(self, t_ns: int) -> list[str]:
        """Whose sizes are to be read, now and again."""
        paths = [path for path, opened in self._opened.items() if not opened.looked]
        for group in self._groups:
            paths += [
                p
                for p, file in group.files.items()
                if file.closed_ns is None or (not file.told and t_ns - file.closed_ns < LOOK_NS)
            ]
        return paths[-_MOST_READ:]

    @property
    def unclaimed(self) -> list[str]:
        """Files that are being written and of which nobody said whose they are."""
        return [
            path
            for group in self._groups
            for path, file in group.files.items()
            if file.closed_ns is None and not file.claimed
        ]

    def claim(self, path: str) -> None:
        """It is the job's, as long as it is open."""
        if path in self._of:
            self._of[path].files[path].claimed = True

    def leave_out(self, path: str) -> bool:
        """It is no part of a checkpoint of this job, until somebody makes it anew. False where a
        checkpoint of it alone was told."""
        group = self._of.get(path)
        if group is None or (group.began and len(group.files) == 1):
            return False
        del self._of[path], group.files[path]
        if not group.files:
            self._groups.remove(group)
        self._left_out.add(path)
        return True

    # ---- events ----

    def event(self, event: FileEvent, stat: Stat | None) -> None:
        """`stat` is the file's, read after the event; None if it could not be."""
        if self._is_left_out(event, stat):
            return
        if event.kind == "lost":
            for group in list(self._groups):
                self._end(group, event.t_ns, "gone")
            self._opened.clear()
            self._awaited.clear()
        elif event.is_dir:
            self._directory(event)
        elif event.kind == "gone":
            self._gone(event.t_ns, event.path)
        elif event.kind == "moved" and not is_noise(event.path):
            self._moved(event, stat)
        elif event.kind == "resumed" and stat is not None:
            self._resumed(event.t_ns, event.path, stat)
        elif event.kind in ("created", "opened", "closed") and not is_noise(event.path):
            {"created": self._created, "opened": self._was_opened, "closed": self._closed}[
                event.kind
            ](event, stat)

    def _is_left_out(self, event: FileEvent, stat: Stat | None) -> bool:
        """Another job's file stays so under another name; one that is made anew may be
        anybody's."""
        path, out = event.path, self._left_out
        if not out:
            return False
        if event.kind == "moved" and event.is_dir:
            inside = {each for each in out if each.startswith(event.old_path + "/")}
            out -= inside
            out |= {path + each[len(event.old_path) :] for each in inside}
            return False
        if event.kind == "moved" and event.old_path in out:
            out.remove(event.old_path)
            out.add(path)
            return True
        anew = event.kind in ("created", "gone", "moved")
        if path in out and (
            anew or (event.kind == "opened" and stat is not None and not stat.size)
        ):
            out.remove(path)
            return event.kind == "gone"
        return path in out

    def _directory(self, event: FileEvent) -> None:
        if event.kind == "created":
            if len(self._made) > 1000:
                self._made = {
                    path: t_ns for path, t_ns in self._made.items() if event.t_ns - t_ns < MADE_NS
                }
            self._made[event.path] = event.t_ns
        elif event.kind == "gone":
            for path in [path for path in self._of if path.startswith(event.path + "/")]:
                self._gone(event.t_ns, path)
        elif event.kind == "moved" and event.old_path:
            old, new = event.old_path, event.path
            renamed = [path for path in self._of if path.startswith(old + "/")]
            for group in {id(self._of[path]): self._of[path] for path in renamed}.values():
                if group.unit == old or group.unit.startswith(old + "/"):
                    group.unit = new + group.unit[len(old) :]
                    group.commit, group.is_sure = (event.t_ns, new, event.how), True
            for path in renamed:
                self._rename(path, new + path[len(old) :])
            for path in [path for path in self._opened if path.startswith(old + "/")]:
                self._opened[new + path[len(old) :]] = self._opened.pop(path)
            for path in [path for path in self._made if path == old or path.startswith(old + "/")]:
                self._made[new + path[len(old) :]] = self._made.pop(path)

    def _rename(self, old: str, new: str) -> None:
        """The file goes where it is called now; all of a group's files that do so are still one
        group."""
        group = self._of.pop(old)
        file = group.files.pop(old)
        there = self._of.get(new)
        if there is not None:
            there.files.pop(new, None)
        unit, key, is_unit = unit_of(new)
        other = next(
            (
                each
                for each in self._groups
                if each is not group and is_unit and each.is_unit and each.key == key
            ),
            None,
        )
        if other is None:
            group.unit, group.key = unit, key
            group.is_unit = group.is_unit or is_unit
            group.files[new] = file
            self._of[new] = group
            return
        other.files[new] = file
        self._of[new] = other
        if group.commit is not None:
            other.commit, other.is_sure = group.commit, True
        if not group.files and not group.began:
            self._groups.remove(group)

    def _created(self, event: FileEvent, stat: Stat | None) -> None:
        if event.path in self._of:
            self._again(event.path, event.t_ns, event.t_ns, stat, event.how, is_new=True)
        else:
            self._start(event.path, event.t_ns, event.t_ns, stat, event.how)

    def _was_opened(self, event: FileEvent, stat: Stat | None) -> None:
        path, t_ns = event.path, event.t_ns
        group = self._of.get(path)
        if group is not None and group.files[path].closed_ns is None:
            return
        before = self._opened.get(path)
        known = group.files[path].size if group is not None else self._known.get(path, 0)
        # an empty file of a group may be a sign that all is there, and one that has been empty for
        # long is no news: who opens it need not be its writer
        emptied = (
            group is None
            and stat is not None
            and stat.size == 0
            and stat.wrote_ns is not None
            and stat.wrote_ns > t_ns - JUST_NS
        )
        cut = stat is not None and (stat.size < known or emptied)
        if path in self._awaited and not cut:
            return
        # who opened it before and changed nothing was a reader; who cuts it writes
        if (
            before is None
            or before.looked
            or cut
            or (before.stat is not None and before.stat == stat)
        ):
            if len(self._opened) > _MOST_KNOWN:
                self._opened.clear()
            self._opened[path] = Opened(t_ns, stat)
        if stat is not None and (cut or event.how in ("mtime", "scan")):
            self._changed(path, t_ns, stat, event.how)

    def _closed(self, event: FileEvent, stat: Stat | None) -> None:
        path, t_ns = event.path, event.t_ns
        self._awaited.discard(path)
        group, opened = self._of.get(path), self._opened.get(path)
        file = group.files[path] if group is not None else None
        if file is not None and file.closed_ns is None:
            file.closed_ns, file.changed_ns, file.how = t_ns, t_ns, event.how
            file.mtime_ns = 0  # what was read before is not the last word
            self._sized(file, t_ns, stat)
        elif stat is None:
            return
        elif file is not None and opened is None:
            if (stat.size, stat.mtime_ns) != (file.size, file.mtime_ns):  # another of its writers
                self._sized(file, t_ns, stat)
                file.closed_ns = t_ns
        elif file is not None:
            if (stat.size, stat.mtime_ns) == (file.size, file.mtime_ns):
                return  # opened for writing, for an fsync, and nothing written
            self._changed(path, t_ns, stat, event.how)
            self._close_now(path, t_ns)
        else:
            lately = stat.wrote_ns is not None and (
                opened is None or stat.wrote_ns >= opened.first_ns - CLOCK_NS
            )
            if opened is None and self._known.get(path) == stat.size:
                return  # it had been still, its saves were told, and now it is closed
            was = opened.stat if opened is not None else None
            if lately or (
                was is not None and (was.size, was.mtime_ns) != (stat.size, stat.mtime_ns)
            ):
                self._changed(path, t_ns, stat, event.how)
                self._close_now(path, t_ns)
        self._opened.pop(path, None)
        self._sign(path, t_ns, event.how)

    def _resumed(self, t_ns: int, path: str, stat: Stat) -> None:
        """A file that was still and nobody had closed is written again: the next save, unless more
        of this one is awaited."""
        self._awaited.discard(path)
        group = self._of.get(path)
        before = self._known.get(path, 0)
        if group is not None:
            file = group.files[path]
            if file.closed_ns is None or not file.appended or (group.is_unit and not group.is_sure):
                file.told = file.told and (file.closed_ns is None or not group.is_unit)
                file.closed_ns = None
                self._sized(file, t_ns, stat)
                return
            before = file.size
            self._end(group, t_ns, "")
        self._opened.pop(path, None)
        self._start(path, t_ns, t_ns, stat, "inotify", before, appended=stat.size >= before)

    def _close_now(self, path: str, t_ns: int) -> None:
        file = self._of[path].files[path]
        file.closed_ns = file.changed_ns = t_ns

    def _changed(self, path: str, t_ns: int, stat: Stat, how: str) -> None:
        """An existing file is being written, since somebody opened it."""
        opened = self._opened.pop(path, None)
        begin_ns = opened.first_ns if opened is not None else None
        if path in self._of:
            self._again(path, begin_ns, t_ns, stat, how)
        else:
            self._start(path, begin_ns, t_ns, stat, how, self._known.get(path, 0))

    def _again(
        self,
        path: str,
        begin_ns: int | None,
        t_ns: int,
        stat: Stat | None,
        how: str,
        *,
        is_new: bool = False,
    ) -> None:
        """A file of an open group is written once more: by a saver that has more to say, or by the
        next save."""
        group = self._of[path]
        file = group.files[path]
        size = stat.size if stat is not None else 0
        grew = (
            not is_new
            and size >= file.size
            and (how != "inotify" or t_ns - file.changed_ns < round(self.rules.gap_s * S))
            and size > file.size
        )
        same = group.is_unit and not group.is_sure
        if (
            max(size, file.size) >= self._small
            and file.closed_ns is not None
            and not grew
            and not same
        ):
            self._end(group, t_ns, "")
            begin_ns = begin_ns if begin_ns is not None else t_ns
            self._start(path, begin_ns, t_ns, stat, how, file.size if file.appended else 0)
        else:
            file.closed_ns = None
            file.told = False
            self._sized(file, t_ns, stat)

    def _start(
        self,
        path: str,
        begin_ns: int | None,
        t_ns: int,
        stat: Stat | None,
        how: str,
        before: int = 0,
        *,
        appended: bool = False,
    ) -> None:
        group = self._place(path, t_ns)
        appended = appended or APPENDED.fullmatch(path) is not None
        file = group.files[path] = File(begin_ns, t_ns, how=how, appended=appended)
        self._of[path] = group
        most = stat.size if stat is not None else 0
        if (0 < before < most and not DATA.fullmatch(path)) or (appended and before <= most):
            file.before = before
        self._sized(file, t_ns, stat)

    def _sized(self, file: File, t_ns: int, stat: Stat | None) -> None:
        if stat is None or (stat.size, stat.mtime_ns) == (file.size, file.mtime_ns):
            return
        if stat.size < file.size:
            file.before = 0
        elif file.paused and self._is_only_opened(file):
            file.begin_ns, file.before = t_ns, file.size
        file.size, file.mtime_ns, file.paused = stat.size, stat.mtime_ns, False
        if file.closed_ns is None:
            own_clock = self._was_there(file) or (file.appended and not self.polled)
            file.changed_ns = stat.wrote_ns if own_clock and stat.wrote_ns is not None else t_ns

    def _is_only_opened(self, file: File) -> bool:
        """It may be added to, and holds no more than a head: a save begins with the next write."""
        return file.appended and file.size - file.before < self._small

    def _was_there(self, file: File) -> bool:
        """Before its directory was watched: where a close is an event, this one's may have gone by
        unseen."""
        return file.was_found and not self.polled

    def _place(self, path: str, t_ns: int) -> Group:
        """The group that a file which begins now belongs to."""
        unit, key, is_unit = unit_of(path)
        name = path.rpartition("/")[2]
        for group in reversed(self._groups):
            if group.is_unit != is_unit or group.key != key:
                continue
            if is_unit:
                return group
            names = [each.rpartition("/")[2] for each in group.data(self._small)]
            overlap = group.is_open
            near = overlap or t_ns - group.last_ns(self._small) <= round(self.rules.gap_s * S)
            told = bool(group.files) and all(file.told for file in group.files.values())
            if another_rank(name, names) or (
                near and not told and same_step(name, names, overlap=overlap)
            ):
                return group
        made_ns = self._made.pop(
            unit, None
        )  # it begins one checkpoint, not the next in the same directory too
        since_ns = made_ns if is_unit and made_ns is not None and t_ns - made_ns < MADE_NS else t_ns
        group = Group(unit, key, is_unit, since_ns)
        self._groups.append(group)
        return group

    def _moved(self, event: FileEvent, stat: Stat | None) -> None:
        old, new, t_ns = event.old_path, event.path, event.t_ns
        self._opened.pop(new, None)  # whoever had it open has another file now
        if old in self._opened:
            self._opened[new] = self._opened.pop(old)
        if old in self._known:
            self._known[new] = self._known.pop(old)
        if old in self._awaited:
            self._awaited.remove(old)
            self._awaited.add(new)
        if old in self._of:
            name = new.rpartition("/")[2]
            replaced = self._of.get(new)
            if (
                replaced is not None
                and not replaced.is_unit
                and replaced.files[new].size >= self._small
            ):
                self._part(old)  # the save before, of the same name
                self._end(replaced, t_ns, "")
            self._rename(old, new)
            group = self._of[new]
            file = group.files[new]
            if (
                file.closed_ns is None or not file.appended
            ):  # else what is new in it is the next save's
                self._sized(file, t_ns, stat)
            if final(name) == name and (not group.is_unit or COMMIT.fullmatch(name)):
                group.commit, group.is_sure = (t_ns, new, event.how), True
            self._sign(new, t_ns, event.how)
        elif not old and stat is not None:  # it came whole, from where we do not see
            if new in self._of and not self._of[new].is_unit:
                self._end(self._of[new], t_ns, "")
            self._start(
                new, stat.born_ns, t_ns, stat, "btime" if stat.born_ns is not None else event.how
            )
            self._close_now(new, t_ns)
            self._sign(new, t_ns, event.how)

    def _part(self, path: str) -> None:
        """The file is a group of its own from now on."""
        group = self._of[path]
        if len(group.files) > 1:
            file = group.files.pop(path)
            since_ns = file.begin_ns if file.begin_ns is not None else file.changed_ns
            self._of[path] = Group(group.unit, group.key, group.is_unit, since_ns, {path: file})
            self._groups.append(self._of[path])

    def _gone(self, t_ns: int, path: str) -> None:
        self._opened.pop(path, None)
        self._known.pop(path, None)
        self._awaited.discard(path)
        group = self._of.pop(path, None)
        if group is not None:
            file = group.files.pop(path)
            if not group.files:
                group.files[path] = file  # what it was, for the last word
                self._end(group, t_ns, "gone")

    def _sign(self, path: str, t_ns: int, how: str) -> None:
        """A small file written when all else was: the commit of its own group, or of one in or just
        below its directory."""
        name, top = path.rpartition("/")[2], path.rpartition("/")[0]
        mine = self._of.get(path)
        if mine is not None and mine.files[path].size >= self._small:
            return
        if mine is not None and not mine.is_open and mine.bytes >= self.rules.least_bytes:
            stem = any(
                other != path and other.startswith(path.rpartition(".")[0]) for other in mine.files
            )
            if COMMIT.fullmatch(name) or POINTER.fullmatch(name):
                mine.commit, mine.is_sure = (t_ns, path, how), True
            elif LITTLE.fullmatch(name) and (mine.is_unit or stem) and final(name) == name:
                mine.commit = (t_ns, path, how)
            return
        if POINTER.fullmatch(name):
            for group in reversed(self._groups):
                above = group.unit.rpartition("/")[0] if group.is_unit else group.unit
                if (
                    above == top
                    and group is not mine
                    and not group.is_open
                    and group.bytes >= self.rules.least_bytes
                ):
                    group.commit, group.is_sure = (t_ns, path, how), True
                    return

    # ---- sizes and time ----

    def read(self, t_ns: int, stats: Mapping[str, Stat | None]) -> None:
        """What the files of `wanted` are now."""
        for path, stat in stats.items():
            opened, group = self._opened.get(path), self._of.get(path)
            if opened is not None and not opened.looked:
                if stat is None:
                    del self._opened[path]
                elif opened.stat is None:
                    opened.stat = stat
                elif (opened.stat.size, opened.stat.mtime_ns) != (stat.size, stat.mtime_ns):
                    self._changed(path, t_ns, stat, "inotify")
                elif t_ns - opened.first_ns > LOOK_NS:
                    opened.looked = True
                    if APPENDED.fullmatch(path):
                        self._known[path] = stat.size
                        self._await(path, stat.size, stat.mtime_ns)
            elif group is not None and stat is not None:
                file = group.files[path]
                if file.closed_ns is not None and file.mtime_ns:
                    later = (
                        stat.wrote_ns is not None
                        and stat.wrote_ns > file.closed_ns + CLOCK_NS
                        and stat.mtime_ns != file.mtime_ns
                    )
                    if stat.size < file.size:
                        continue  # cut for the next save: its event is on the way
                    if stat.size > file.size or later:
                        file.closed_ns = None  # one of several writers had closed it
                self._sized(file, t_ns, stat)

    def tick(self, t_ns: int) -> list[Step]:
        """What is certain by now."""
        for group in list(self._groups):
            self._turn(group, t_ns)
        told, self._telling.out = self._telling.out, []
        return told

    def finish(self, t_ns: int) -> list[Step]:
        """The last word on every group: nobody writes any more, or nobody watches."""
        for group in list(self._groups):
            for file in group.files.values():
                if self._was_there(file) and file.closed_ns is None:
                    file.closed_ns = file.changed_ns
            self._end(group, t_ns, "unfinished" if group.is_open else "")
        return self.tick(t_ns)

    def _turn(self, group: Group, t_ns: int) -> None:
        rules = self.rules
        for path, file in group.files.items():
            if file.closed_ns is not None:
                continue
            quiet_ns = t_ns - file.changed_ns
            if file.appended and quiet_ns >= PAUSE_NS and not file.paused:
                file.paused = True
                self.paused.append(path)
                if self._is_only_opened(file):
                    self._await(path, file.size, file.mtime_ns)
            if quiet_ns >= self._still_s(file) * S:
                file.closed_ns, file.how = file.changed_ns, "still"
                self._await(path, file.size, file.mtime_ns)
        quiet_s = (t_ns - group.last_ns(self._small)) / S
        large = group.bytes >= rules.least_bytes
        if large:
            self._telling.begin(group, sure=False)
        if any(file.closed_ns is None for file in group.data(self._small).values()):
            if not large and t_ns - group.since_ns > rules.unfinished_s * S:
                self._drop(group)  # a log under another name
        elif quiet_s >= rules.gap_s:
            if large:
                self._telling.written(group)
                if quiet_s >= self._patience_s(group):
                    self._end(group, t_ns, "")
            elif quiet_s >= (rules.commit_s if group.may_grow else rules.gap_s):
                self._drop(group)

    def _await(self, path: str, size: int, mtime_ns: int) -> None:
        """The next write into it, which polling sees by itself."""
        if not self.polled:
            self.still[path] = (size, mtime_ns)
            self._awaited.add(path)

    def _still_s(self, file: File) -> float:
        """How long a file that nobody closed has not changed when it is taken for written."""
        if self._was_there(file):  # when we looked: its close may have gone by unseen
            return self.rules.gap_s
        return self.rules.append_s if file.appended else self.rules.still_s

    def _patience_s(self, group: Group) -> float:
        rules = self.rules
        if group.lacks(self._small):
            return rules.unfinished_s
        if group.is_sure:
            return rules.gap_s * (5.0 if group.is_unit else 1.0)
        return rules.commit_s if group.may_grow else 3.0 * rules.gap_s

    def _end(self, group: Group, t_ns: int, error: str) -> None:
        """All that is still to be said of it. Nothing, if it never was large enough."""
        if group not in self._groups:
            return
        if group.bytes >= self.rules.least_bytes or group.began:
            if not error and group.lacks(self._small):
                error = "unfinished"
            if error == "gone" or group.is_open:
                self._telling.begin(group, sure=True)
            else:
                self._telling.written(group)
            path = group.unit if group.is_unit else min(group.data(self._small))
            if group.commit is not None and not error:
                self._telling.say(group, "committed", *group.commit)
                path = group.commit[1] if not group.is_unit else path
            self._telling.say(
                group, "end", t_ns if error else group.last_ns(self._small), path, "", error
            )
        self._drop(group)

    def _drop(self, group: Group) -> None:
        self._groups.remove(group)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        for path, file in group.files.items():
            self._known[path] = file.size
            if self._of.get(path) is group:
                del self._of[path]
