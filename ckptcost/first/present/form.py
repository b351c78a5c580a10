"""A form as data: its fields, each ready to be shown."""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """One field as it should be shown."""

    path: str
    """which quantity it is, for whoever hears of an edit"""
    label: str
    text: str
    """the value in force as a flag would give it; empty where nobody gives one"""
    unit: str = ""
    mark: str = ""
    """where the value comes from: u yours, m measured, s sourced, d default, = derived"""
    group: str = ""
    """the heading that it stands under"""
    choices: tuple[str, ...] = ()
    """what it can hold, where that is a list"""
    error: str = ""
    """why its text cannot be used; empty where it can"""
    placeholder: str = ""
    """shown while the text is empty: what holds without it, or an example"""
