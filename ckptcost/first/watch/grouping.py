"""Which files are one checkpoint, when it began, was written and committed: no I/O and no clock,
fed with events and with sizes.

Names say little for certain, so the rules rest on what a saver must do. A directory with a step in
its name is one checkpoint, whatever lies in it. Files side by side are one while they overlap or
follow within `gap_s`, unless their names count another step; a number that varies while files
overlap counts ranks. What is renamed stays what it was. Readers open files too: only what then
changes was a save.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from posixpath import basename

from ckptcost.first.watch.groups import (
    CheckpointStep,
    FileGroup,
    FileStat,
    Opened,
    Rules,
    StepLog,
    WatchedFile,
)
from ckptcost.first.watch.inotify import FileEvent
from ckptcost.first.watch.names import (
    APPENDED,
    COMMIT,
    DATA,
    LITTLE,
    POINTER,
    another_rank,
    below,
    final,
    is_noise,
    same_step,
    unit_of,
    within,
)

S = 1_000_000_000
CLOCK_NS = 20_000_000
"""file systems note times by a clock that ticks every 4 to 10 ms"""
JUST_NS = S
"""what was written no longer ago may be what the event tells of"""
LOOK_NS = 2 * S
"""a file that was opened and has not changed for so long is being read"""
MADE_NS = 30 * S
"""a directory made so long before its first file is where the save began"""
PAUSE_NS = 2 * S // 5
"""a file that may be added to and has not changed for so long may be at the end of a save"""
_MOST_READ = 512
_MOST_KNOWN = 100_000
UNKNOWN, OPENED, WRITTEN, CLOSED = range(4)
"""states of a file: in no group; the same, and somebody opened it; of a group, and some writer has
it open; of a group, and closed"""


def _is_companion(path: str, name: str, group: FileGroup) -> bool:
    """A little file of a directory's checkpoint, or beside one under the same stem."""
    if not LITTLE.fullmatch(name) or final(name) != name:
        return False
    stem = path.rpartition(".")[0]
    return group.is_unit or any(o != path and o.startswith(stem) for o in group.files)


class Grouping:
    """`event` and `read` put in, `tick` gives what is certain by then; `finish` at the end."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self._small = self.rules.small_bytes
        self.polled = False
        """files are looked at again and again, and their being still is told as a close"""
        self._groups: list[FileGroup] = []
        self._of: dict[str, FileGroup] = {}
        self._opened: dict[str, Opened] = {}
        self._made: dict[str, int] = {}
        self._known: dict[str, int] = {}
        self._left_out: set[str] = set()
        self._telling = StepLog(self._small)
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

    def event(self, event: FileEvent, stat: FileStat | None) -> None:
        """`stat` is the file's, read after the event; None if it could not be."""
        if not event.is_dir and self._is_left_out(event, stat):
            return
        path = event.path
        if event.is_dir:
            transition = _OF_DIRECTORIES.get(event.kind)
        elif event.kind not in _OF_FILES or (event.kind in _NOT_OF_NOISE and is_noise(path)):
            return
        else:
            transition = _OF_FILES[event.kind][self._state_of(path)]
        if event.kind == "closed" and not event.is_dir:
            self._awaited.discard(path)
        if transition is not None:
            transition(self, event, stat)

    def _state_of(self, path: str) -> int:
        group = self._of.get(path)
        if group is None:
            return OPENED if path in self._opened else UNKNOWN
        return WRITTEN if group.files[path].closed_ns is None else CLOSED

    def _is_left_out(self, event: FileEvent, stat: FileStat | None) -> bool:
        """Another job's file stays so under another name; one that is made anew may be
        anybody's."""
        path, old, out = event.path, event.old_path, self._left_out
        if event.kind == "moved" and old in out:
            out.remove(old)
            out.add(path)
            return True
        if path not in out:
            return False
        is_cut = event.kind == "opened" and stat is not None and not stat.size
        if event.kind not in ("created", "gone", "moved") and not is_cut:
            return True
        out.remove(path)
        return event.kind == "gone"

    def _lose(self, event: FileEvent, _: FileStat | None) -> None:
        for group in list(self._groups):
            self._end(group, event.t_ns, "gone")
        self._opened.clear()
        self._awaited.clear()

    def _make_directory(self, event: FileEvent, _: FileStat | None) -> None:
        if len(self._made) > 1000:
            self._made = {
                path: t_ns for path, t_ns in self._made.items() if event.t_ns - t_ns < MADE_NS
            }
        self._made[event.path] = event.t_ns

    def _remove_directory(self, event: FileEvent, _: FileStat | None) -> None:
        for path in within(event.path, self._of):
            self._take_out(event.t_ns, path)

    def _move_directory(self, event: FileEvent, _: FileStat | None) -> None:
        old, new = event.old_path, event.path
        if not old:
            return
        for path in within(old, self._left_out):
            self._left_out.remove(path)
            self._left_out.add(new + path[len(old) :])
        renamed = within(old, self._of)
        for group in [self._of[path] for path in renamed]:
            if below(old, [group.unit]):
                group.unit = new + group.unit[len(old) :]
                group.commit, group.is_sure = (event.t_ns, new, event.how), True
        for path in renamed:
            self._rename(path, new + path[len(old) :], event.t_ns)
        for path in within(old, self._opened):
            self._opened[new + path[len(old) :]] = self._opened.pop(path)
        for path in below(old, self._made):
            self._made[new + path[len(old) :]] = self._made.pop(path)

    def _rename(self, old: str, new: str, t_ns: int) -> None:
        """The file goes where it is called now; all of a group's files that do so are still one
        group."""
        group = self._of.pop(old)
        file = group.files.pop(old)
        there = self._of.get(new, group)
        replaced = there.files.pop(new, None)
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
        elif group.commit is not None:
            other.commit, other.is_sure = group.commit, True
        to = other or group
        to.files[new] = file
        self._of[new] = to
        self._end_empty(group, old, file, t_ns)
        if replaced is not None:
            self._end_empty(there, new, replaced, t_ns)

    def _end_empty(self, group: FileGroup, path: str, file: WatchedFile, t_ns: int) -> None:
        """Where the file that went to another group, or was replaced, was its last one."""
        if group.files or group not in self._groups:
            return
        group.files[path] = file  # what it was, for the last word
        if group.began:
            self._end(group, t_ns, "gone")
        else:
            self._groups.remove(group)

    def _begin(self, event: FileEvent, stat: FileStat | None) -> None:
        self._start(event.path, event.t_ns, event.t_ns, stat, event.how)

    def _begin_anew(self, event: FileEvent, stat: FileStat | None) -> None:
        self._write_again(event.path, event.t_ns, event.t_ns, stat, event.how, is_new=True)

    def _open(self, event: FileEvent, stat: FileStat | None) -> None:
        """Somebody opened a file that nobody is known to write: a reader, unless he cuts it."""
        path, t_ns = event.path, event.t_ns
        before = self._opened.get(path)
        cut = self._is_cut(path, t_ns, stat)
        if path in self._awaited and not cut:
            return
        if before is None or cut or before.was_reader(stat):
            if len(self._opened) > _MOST_KNOWN:
                self._opened.clear()
            self._opened[path] = Opened(t_ns, stat)
        if stat is not None and (cut or event.how in ("mtime", "scan")):
            self._note_change(path, t_ns, stat, event.how)

    def _is_cut(self, path: str, t_ns: int, stat: FileStat | None) -> bool:
        """It is shorter than it was, or was made empty just now. An empty file of a group may be a
        sign that all is there, and one that has been empty for long is no news: who opens it need
        not be its writer."""
        if stat is None:
            return False
        group = self._of.get(path)
        if group is not None:
            return stat.size < group.files[path].size
        lately = stat.wrote_ns is not None and stat.wrote_ns > t_ns - JUST_NS
        return stat.size < self._known.get(path, 0) or (stat.size == 0 and lately)

    def _close(self, event: FileEvent, stat: FileStat | None) -> None:
        file = self._of[event.path].files[event.path]
        file.closed_ns, file.changed_ns, file.how = event.t_ns, event.t_ns, event.how
        file.mtime_ns = 0  # what was read before is not the last word
        self._resize(file, event.t_ns, stat)
        self._let_go(event)

    def _close_again(self, event: FileEvent, stat: FileStat | None) -> None:
        path, t_ns = event.path, event.t_ns
        file = self._of[path].files[path]
        if stat is None:
            return
        changed = (stat.size, stat.mtime_ns) != (file.size, file.mtime_ns)
        if path in self._opened:
            if not changed:
                return  # opened for writing, for an fsync, and nothing written
            self._note_change(path, t_ns, stat, event.how)
            self._close_now(path, t_ns)
        elif changed:  # another of its writers
            self._resize(file, t_ns, stat)
            file.closed_ns = t_ns
        self._let_go(event)

    def _close_unseen(self, event: FileEvent, stat: FileStat | None) -> None:
        """A file of no group was open for writing: a save, if it changed meanwhile."""
        path, opened = event.path, self._opened.get(event.path)
        if stat is None:
            return
        if opened is None:
            if self._known.get(path) == stat.size:
                return  # it had been still, its saves were told, and now it is closed
            changed = stat.wrote_ns is not None
        else:
            was = opened.stat
            changed = stat.wrote_ns is not None and stat.wrote_ns >= opened.first_ns - CLOCK_NS
            changed |= was is not None and (was.size, was.mtime_ns) != (stat.size, stat.mtime_ns)
        if changed:
            self._note_change(path, event.t_ns, stat, event.how)
            self._close_now(path, event.t_ns)
        self._let_go(event)

    def _let_go(self, event: FileEvent) -> None:
        """Whoever had it open is done."""
        self._opened.pop(event.path, None)
        self._sign(event.path, event.t_ns, event.how)

    def _resume_unknown(self, event: FileEvent, stat: FileStat | None) -> None:
        """A file that was still and nobody had closed is written again."""
        if stat is not None:
            self._resume(event, stat, self._known.get(event.path, 0))

    def _go_on(self, event: FileEvent, stat: FileStat | None) -> None:
        """More of the same save."""
        if stat is None:
            return
        self._awaited.discard(event.path)
        group = self._of[event.path]
        file = group.files[event.path]
        file.told = file.told and (file.closed_ns is None or not group.is_unit)
        file.closed_ns = None
        self._resize(file, event.t_ns, stat)

    def _resume_closed(self, event: FileEvent, stat: FileStat | None) -> None:
        """The next save, unless more of this one is awaited."""
        group = self._of[event.path]
        file = group.files[event.path]
        if not file.appended or group.awaits_more:
            self._go_on(event, stat)
        elif stat is not None:
            self._end(group, event.t_ns, "")
            self._resume(event, stat, file.size)

    def _resume(self, event: FileEvent, stat: FileStat, before: int) -> None:
        path, t_ns = event.path, event.t_ns
        self._awaited.discard(path)
        self._opened.pop(path, None)
        self._start(path, t_ns, t_ns, stat, "inotify", before, appended=stat.size >= before)

    def _close_now(self, path: str, t_ns: int) -> None:
        file = self._of[path].files[path]
        file.closed_ns = file.changed_ns = t_ns

    def _note_change(self, path: str, t_ns: int, stat: FileStat, how: str) -> None:
        """An existing file is being written, since somebody opened it."""
        opened = self._opened.pop(path, None)
        begin_ns = opened.first_ns if opened is not None else None
        if path in self._of:
            self._write_again(path, begin_ns, t_ns, stat, how)
        else:
            self._start(path, begin_ns, t_ns, stat, how, self._known.get(path, 0))

    def _write_again(
        self,
        path: str,
        begin_ns: int | None,
        t_ns: int,
        stat: FileStat | None,
        how: str,
        *,
        is_new: bool = False,
    ) -> None:
        """A file of an open group is written once more: by a saver that has more to say, or by the
        next save."""
        group = self._of[path]
        file = group.files[path]
        if (
            file.closed_ns is None
            or group.awaits_more
            or self._is_more(file, t_ns, stat, how, is_new)
        ):
            file.closed_ns = None
            file.told = False
            self._resize(file, t_ns, stat)
        else:
            self._end(group, t_ns, "")
            begin_ns = begin_ns if begin_ns is not None else t_ns
            self._start(path, begin_ns, t_ns, stat, how, file.size if file.appended else 0)

    def _is_more(
        self, file: WatchedFile, t_ns: int, stat: FileStat | None, how: str, is_new: bool
    ) -> bool:
        """It grew soon after it was closed, or never was large: no other save."""
        size = stat.size if stat is not None else 0
        if max(size, file.size) < self._small:
            return True
        soon = how != "inotify" or t_ns - file.changed_ns < round(self.rules.gap_s * S)
        return not is_new and size > file.size and soon

    def _start(
        self,
        path: str,
        begin_ns: int | None,
        t_ns: int,
        stat: FileStat | None,
        how: str,
        before: int = 0,
        *,
        appended: bool = False,
    ) -> None:
        group = self._place(path, t_ns)
        appended = appended or APPENDED.fullmatch(path) is not None
        file = group.files[path] = WatchedFile(begin_ns, t_ns, how=how, appended=appended)
        self._of[path] = group
        most = stat.size if stat is not None else 0
        if (0 < before < most and not DATA.fullmatch(path)) or (appended and before <= most):
            file.before = before
        self._resize(file, t_ns, stat)

    def _resize(self, file: WatchedFile, t_ns: int, stat: FileStat | None) -> None:
        if stat is None or (stat.size, stat.mtime_ns) == (file.size, file.mtime_ns):
            return
        if stat.size < file.size:
            file.before = 0
        elif file.paused and file.is_only_opened(self._small):
            file.begin_ns, file.before = t_ns, file.size
        file.size, file.mtime_ns, file.paused = stat.size, stat.mtime_ns, False
        if file.closed_ns is None:
            wrote_ns = stat.wrote_ns if file.tells_writes(self.polled) else None
            file.changed_ns = t_ns if wrote_ns is None else wrote_ns

    def _place(self, path: str, t_ns: int) -> FileGroup:
        """The group that a file which begins now belongs to."""
        unit, key, is_unit = unit_of(path)
        name = basename(path)
        for group in reversed(self._groups):
            if (group.is_unit, group.key) == (is_unit, key) and (
                is_unit or self._is_beside(name, group, t_ns)
            ):
                return group
        # it begins one checkpoint, not the next in the same directory too
        made_ns = self._made.pop(unit, None)
        since_ns = made_ns if is_unit and made_ns is not None and t_ns - made_ns < MADE_NS else t_ns
        group = FileGroup(unit, key, is_unit, since_ns)
        self._groups.append(group)
        return group

    def _is_beside(self, name: str, group: FileGroup, t_ns: int) -> bool:
        """A file of that name in the group's directory is of its checkpoint."""
        names = [basename(path) for path in group.data(self._small)]
        if another_rank(name, names):
            return True
        overlap = group.is_open
        near = overlap or t_ns - group.last_ns(self._small) <= round(self.rules.gap_s * S)
        told = all(file.told for file in group.files.values())
        return near and not told and same_step(name, names, overlap=overlap)

    def _move(self, event: FileEvent, stat: FileStat | None) -> None:
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
            self._move_of_group(event, stat)
        elif not old and stat is not None:  # it came whole, from where we do not see
            if new in self._of and not self._of[new].is_unit:
                self._end(self._of[new], t_ns, "")
            how = "btime" if stat.born_ns is not None else event.how
            self._start(new, stat.born_ns, t_ns, stat, how)
            self._close_now(new, t_ns)
            self._sign(new, t_ns, event.how)

    def _move_of_group(self, event: FileEvent, stat: FileStat | None) -> None:
        old, new, t_ns = event.old_path, event.path, event.t_ns
        name, there = basename(new), self._of.get(new)
        if there is not None and not there.is_unit and there.files[new].size >= self._small:
            self._split_off(old)  # the save before, of the same name
            self._end(there, t_ns, "")
        self._rename(old, new, t_ns)
        group = self._of[new]
        file = group.files[new]
        if file.closed_ns is None or not file.appended:
            # else what is new in it is the next save's
            self._resize(file, t_ns, stat)
        if final(name) == name and (not group.is_unit or COMMIT.fullmatch(name)):
            group.commit, group.is_sure = (t_ns, new, event.how), True
        self._sign(new, t_ns, event.how)

    def _split_off(self, path: str) -> None:
        """The file is a group of its own from now on."""
        group = self._of[path]
        if len(group.files) > 1:
            file = group.files.pop(path)
            self._of[path] = FileGroup(
                group.unit, group.key, group.is_unit, file.since_ns, {path: file}
            )
            self._groups.append(self._of[path])

    def _remove(self, event: FileEvent, _: FileStat | None) -> None:
        self._take_out(event.t_ns, event.path)

    def _take_out(self, t_ns: int, path: str) -> None:
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
        name, mine = basename(path), self._of.get(path)
        if mine is not None and mine.files[path].size >= self._small:
            return
        points = POINTER.fullmatch(name)
        if mine is not None and self._is_whole(mine):
            if points or COMMIT.fullmatch(name):
                mine.commit, mine.is_sure = (t_ns, path, how), True
            elif _is_companion(path, name, mine):
                mine.commit = (t_ns, path, how)
        elif points:
            pointed = self._pointed_at(path.rpartition("/")[0], mine)
            if pointed is not None:
                pointed.commit, pointed.is_sure = (t_ns, path, how), True

    def _is_whole(self, group: FileGroup) -> bool:
        return not group.is_open and group.bytes >= self.rules.least_bytes

    def _pointed_at(self, directory: str, mine: FileGroup | None) -> FileGroup | None:
        """The last checkpoint in a directory or just below it."""
        for group in reversed(self._groups):
            above = group.unit.rpartition("/")[0] if group.is_unit else group.unit
            if above == directory and group is not mine and self._is_whole(group):
                return group
        return None

    # ---- sizes and time ----

    def read(self, t_ns: int, stats: Mapping[str, FileStat | None]) -> None:
        """What the files of `wanted` are now."""
        for path, stat in stats.items():
            opened, group = self._opened.get(path), self._of.get(path)
            if opened is not None and not opened.looked:
                self._read_opened(t_ns, path, stat, opened)
            elif group is not None and stat is not None:
                self._read_file(t_ns, group.files[path], stat)

    def _read_opened(self, t_ns: int, path: str, stat: FileStat | None, opened: Opened) -> None:
        if stat is None:
            del self._opened[path]
        elif opened.stat is None:
            opened.stat = stat
        elif (opened.stat.size, opened.stat.mtime_ns) != (stat.size, stat.mtime_ns):
            self._note_change(path, t_ns, stat, "inotify")
        elif t_ns - opened.first_ns > LOOK_NS:
            opened.looked = True
            if APPENDED.fullmatch(path):
                self._known[path] = stat.size
                self._await(path, stat.size, stat.mtime_ns)

    def _read_file(self, t_ns: int, file: WatchedFile, stat: FileStat) -> None:
        if file.closed_ns is not None and file.mtime_ns:
            if stat.size < file.size:
                return  # cut for the next save: its event is on the way
            later = stat.wrote_ns is not None and stat.wrote_ns > file.closed_ns + CLOCK_NS
            if stat.size > file.size or (later and stat.mtime_ns != file.mtime_ns):
                file.closed_ns = None  # one of several writers had closed it
        self._resize(file, t_ns, stat)

    def tick(self, t_ns: int) -> list[CheckpointStep]:
        """What is certain by now."""
        for group in list(self._groups):
            self._turn(group, t_ns)
        told, self._telling.out = self._telling.out, []
        return told

    def finish(self, t_ns: int) -> list[CheckpointStep]:
        """The last word on every group: nobody writes any more, or nobody watches."""
        for group in list(self._groups):
            for file in group.files.values():
                if file.was_there(self.polled) and file.closed_ns is None:
                    file.closed_ns = file.changed_ns
            self._end(group, t_ns, "unfinished" if group.is_open else "")
        return self.tick(t_ns)

    def _turn(self, group: FileGroup, t_ns: int) -> None:
        rules = self.rules
        for path, file in group.files.items():
            self._look_for_pause(path, file, t_ns)
        quiet_s = (t_ns - group.last_ns(self._small)) / S
        is_open = any(file.closed_ns is None for file in group.data(self._small).values())
        if group.bytes >= rules.least_bytes:
            self._telling.begin(group, sure=False)
            if not is_open and quiet_s >= rules.gap_s:
                self._telling.written(group)
                if quiet_s >= rules.patience_s(group):
                    self._end(group, t_ns, "")
        elif is_open:
            if t_ns - group.since_ns > rules.unfinished_s * S:
                self._drop(group)  # a log under another name
        elif quiet_s >= max(rules.gap_s, rules.commit_s * group.may_grow):
            self._drop(group)

    def _look_for_pause(self, path: str, file: WatchedFile, t_ns: int) -> None:
        """A file that is written has not changed for a moment, or for so long that it is done."""
        if file.closed_ns is not None:
            return
        quiet_ns = t_ns - file.changed_ns
        if file.appended and quiet_ns >= PAUSE_NS and not file.paused:
            file.paused = True
            self.paused.append(path)
            if file.is_only_opened(self._small):
                self._await(path, file.size, file.mtime_ns)
        if quiet_ns >= self.rules.still_for_s(file, self.polled) * S:
            file.closed_ns, file.how = file.changed_ns, "still"
            self._await(path, file.size, file.mtime_ns)

    def _await(self, path: str, size: int, mtime_ns: int) -> None:
        """The next write into it, which polling sees by itself."""
        if not self.polled:
            self.still[path] = (size, mtime_ns)
            self._awaited.add(path)

    def _end(self, group: FileGroup, t_ns: int, error: str) -> None:
        """All that is still to be said of it. Nothing, if it never was large enough."""
        if group not in self._groups:
            return
        if group.bytes >= self.rules.least_bytes or group.began:
            self._tell_end(group, t_ns, error)
        self._drop(group)

    def _tell_end(self, group: FileGroup, t_ns: int, error: str) -> None:
        if not error and group.lacks(self._small):
            error = "unfinished"
        if error == "gone" or group.is_open:
            self._telling.begin(group, sure=True)
        else:
            self._telling.written(group)
        path = group.first_path(self._small)
        if group.commit is not None and not error:
            self._telling.say(group, "committed", *group.commit)
            path = path if group.is_unit else group.commit[1]
        at_ns = t_ns if error else group.last_ns(self._small)
        self._telling.say(group, "end", at_ns, path, "", error)

    def _drop(self, group: FileGroup) -> None:
        self._groups.remove(group)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        for path, file in group.files.items():
            self._known[path] = file.size
            if self._of.get(path) is group:
                del self._of[path]


Transition = Callable[[Grouping, FileEvent, FileStat | None], None]
_OF_DIRECTORIES: dict[str, Transition] = {
    "created": Grouping._make_directory,
    "gone": Grouping._remove_directory,
    "moved": Grouping._move_directory,
    "lost": Grouping._lose,
}
_NOT_OF_NOISE = {"created", "opened", "closed", "moved"}
"""of names that are no checkpoint's"""
_OF_FILES: dict[str, tuple[Transition | None, ...]] = {
    # UNKNOWN, OPENED, WRITTEN, CLOSED
    "created": (Grouping._begin, Grouping._begin, Grouping._begin_anew, Grouping._begin_anew),
    "opened": (Grouping._open, Grouping._open, None, Grouping._open),
    "closed": (
        Grouping._close_unseen,
        Grouping._close_unseen,
        Grouping._close,
        Grouping._close_again,
    ),
    "resumed": (
        Grouping._resume_unknown,
        Grouping._resume_unknown,
        Grouping._go_on,
        Grouping._resume_closed,
    ),
    "moved": (Grouping._move,) * 4,
    "gone": (Grouping._remove,) * 4,
}
"""what an event does to a file in each of its states"""
