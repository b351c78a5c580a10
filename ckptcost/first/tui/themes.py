"""Colours, which carry meaning only: good, warning, bad, a checkpoint's shade, and series that stay
apart for colour-blind eyes."""

from __future__ import annotations

from collections.abc import Sequence

from textual.theme import Theme

OKABE_ITO = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#D55E00", "#999999")
"""series colours that differ for every kind of colour vision (Okabe and Ito, 2008)"""
ON_LIGHT = ("#0072B2", "#A05400", "#007A58", "#A0427A", "#7A6F00", "#1B4F8A", "#A33B00", "#555555")
"""the same hues, dark enough for a white ground"""


def _series(colours: tuple[str, ...], edge: str, ground: str, **bands: str) -> dict[str, str]:
    """`edge`: borders and the thumb of a scroll bar, three times as bright as what they lie on."""
    series = {f"series-{number}": colour for number, colour in enumerate(colours, start=1)}
    bars = {f"scrollbar{name}": edge for name in ("", "-hover", "-active")}
    grounds = {f"scrollbar-background{name}": ground for name in ("", "-hover", "-active")}
    own = {"panel-lighten-2": edge, "scrollbar-corner-color": ground}
    return {
        **series,
        **{f"band-{name}": one for name, one in bands.items()},
        **bars,
        **grounds,
        **own,
    }


THEMES = (
    Theme(
        "ckptcost-dark",
        primary="#4FA3D1",
        secondary="#7FB7D6",
        warning="#E0A030",
        error="#E5645C",
        success="#5FBF77",
        accent="#E0A030",
        foreground="#D8DEE4",
        background="#10151A",
        surface="#161D24",
        panel="#1E2730",
        dark=True,
        variables=_series(
            OKABE_ITO,
            edge="#647382",
            ground="#10151A",
            save="#3A3420",
            load="#20343A",
            drain="#2A2A20",
            plateau="#1D3326",
        ),
    ),
    Theme(
        "ckptcost-light",
        primary="#0A6AA1",
        secondary="#31688A",
        warning="#8A5A00",
        error="#B3261E",
        success="#166A34",
        accent="#8A5A00",
        foreground="#1B232A",
        background="#FAFAF8",
        surface="#F1F2F0",
        panel="#E4E7E8",
        dark=False,
        variables=_series(
            ON_LIGHT,
            edge="#7B868F",
            ground="#FAFAF8",
            save="#F3E3B8",
            load="#CFE6F2",
            drain="#EDEBDD",
            plateau="#D6EFDC",
        ),
    ),
    Theme(
        "ckptcost-contrast",
        primary="#00FFFF",
        secondary="#FFFFFF",
        warning="#FFFF00",
        error="#FF6060",
        success="#00FF00",
        accent="#FFFF00",
        foreground="#FFFFFF",
        background="#000000",
        surface="#000000",
        panel="#202020",
        dark=True,
        text_alpha=1.0,
        variables=_series(
            (
                "#00FFFF",
                "#FFFF00",
                "#00FF00",
                "#FF80FF",
                "#FFFFFF",
                "#80A0FF",
                "#FF9040",
                "#C0C0C0",
            ),
            edge="#A0A0A0",
            ground="#000000",
            save="#4A4A00",
            load="#004A4A",
            drain="#303000",
            plateau="#004000",
        ),
    ),
    Theme(
        "ckptcost-colour-blind",
        primary="#56B4E9",
        secondary="#0072B2",
        warning="#E69F00",
        error="#D55E00",
        success="#56B4E9",
        accent="#F0E442",
        foreground="#E6E6E6",
        background="#101014",
        surface="#17171D",
        panel="#22222A",
        dark=True,
        variables=_series(
            OKABE_ITO,
            edge="#70707C",
            ground="#101014",
            save="#4A3A10",
            load="#10304A",
            drain="#33301C",
            plateau="#10304A",
        ),
    ),
)
DEFAULT = THEMES[0].name


def theme_for(name: str, no_color: bool, themes: Sequence[Theme] = THEMES) -> str:
    """The theme to begin with; without colours one that survives without them, whatever was
    remembered."""
    return name if name in {theme.name for theme in themes} and not no_color else DEFAULT
