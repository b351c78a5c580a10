"""Keys act in the order in which they were typed, however fast: each waits until the one before
has done what it does.

Textual hands a key to the widget that has the focus and takes the next at once. A key that opens a
dialog, or that a dialog understands only once its field has taken the letters before it, would
otherwise be overtaken by those that follow.
"""

from __future__ import annotations

import string
import unicodedata
from collections import deque
from typing import Any, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS  # for what follows Esc, see below
from textual.app import App
from textual.events import Event, Key, Paste
from textual.keys import KEY_NAME_REPLACEMENTS
from textual.message import Message
from textual.message_pump import MessagePump
from textual.timer import Timer

ROUNDS = 2
"""the first ends when the key has been heard, the second when what it set off has been: a field
that was submitted, a row that was chosen"""
PATIENCE_S = 2.0
"""no key waits longer for one that somebody swallowed together with the widget it went to"""
MOST_PASTED = 1_000
"""characters: no field here takes more, and a field is drawn and read again for every change"""

_AFTER_ESCAPE = 0xE000
"""a code point that nobody types, for a sign that came right after Esc: Textual has the two as the
sign alone"""
_SEQUENCES = cast(dict[str, object], ANSI_SEQUENCES_KEYS)
for _digit in string.digits:
    # Textual takes Esc and a digit soon after it for a letter of a Mac's Option key
    _SEQUENCES.pop(f"\x1b{_digit}", None)
for _sign in string.punctuation.replace("[", " \r"):  # Esc and [ begin what keys such as F1 send
    _SEQUENCES[f"\x1b{_sign}"] = chr(_AFTER_ESCAPE + ord(_sign))


class KeyPassed(Message):
    """Follows a key from widget to widget up to the application."""

    def __init__(self, heard_by: MessagePump, turn: int, rounds_left: int) -> None:
        super().__init__()
        self.heard_by, self.turn, self.rounds_left = heard_by, turn, rounds_left


class TypingAhead(App[Any]):
    """An application that takes one key after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._typed: deque[Key] = deque()
        self._turn = 0
        self._awaited = False
        self._patience: Timer | None = None

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Paste) and not event.is_forwarded and len(event.text) > MOST_PASTED:
            event.text = event.text[:MOST_PASTED]
            self.notify(f"Of what was pasted, the first {MOST_PASTED:,} characters were taken.")
        if not isinstance(event, Key) or event.is_forwarded:
            await super().on_event(event)
            return
        for key in _as_typed(event):
            if self._awaited:
                self._typed.append(key)
            else:
                await self._take_key(key)

    async def _take_key(self, key: Key) -> None:
        self._turn += 1
        self._awaited = True
        self._patience = self.set_timer(PATIENCE_S, self._lose_patience)
        heard_by = self.focused or self.screen
        await super().on_event(key)
        await self._follow(KeyPassed(heard_by, self._turn, ROUNDS - 1))

    async def _follow(self, passed: KeyPassed) -> None:
        if not passed.heard_by.post_message(passed):  # its dialog has been closed
            await self._take_next()

    async def on_key_passed(self, passed: KeyPassed) -> None:
        if passed.turn != self._turn:
            return
        if passed.rounds_left:
            await self._follow(KeyPassed(passed.heard_by, passed.turn, passed.rounds_left - 1))
        else:
            await self._take_next()

    async def _lose_patience(self) -> None:
        if self._awaited:
            await self._take_next()

    async def _take_next(self) -> None:
        self._awaited = False
        if self._patience is not None:
            self._patience.stop()
            self._patience = None
        if self._typed:
            await self._take_key(self._typed.popleft())


def _as_typed(key: Key) -> tuple[Key, ...]:
    """Terminals send Esc and a character soon after it as they send Alt with the character; under
    tmux, within half a second. No key here has Alt, so both were typed."""
    letter = key.key.removeprefix("alt+")
    if letter.startswith("shift+"):
        letter = letter.removeprefix("shift+").upper()
    if len(letter) == 1 and (sign := ord(letter) - _AFTER_ESCAPE) in range(128):
        return Key("escape", "\x1b"), Key(_name_of(chr(sign)), chr(sign))
    if letter == key.key or len(letter) != 1:
        return (key,)
    return Key("escape", "\x1b"), Key(letter, letter)


def _name_of(sign: str) -> str:
    """What Textual calls the key.

    >>> _name_of("?"), _name_of("/"), _name_of(" "), _name_of("\\r")
    ('question_mark', 'slash', 'space', 'enter')
    """
    if sign == "\r":
        return "enter"
    name = unicodedata.name(sign).lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)
