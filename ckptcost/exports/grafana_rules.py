"""Prometheus rules over the queries of `grafana_queries`: recorded figures in the units that people
read, and one alert."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ckptcost.core.units import HOUR_S, KWH_J
from ckptcost.exports import metric_names as names
from ckptcost.exports.grafana_queries import SHOWN

Json = dict[str, Any]


def rules() -> Iterator[str]:
    """The rules file. JSON's quoting is YAML's too, so only the outline is YAML's own."""
    units = (
        f"kWh = joules / {KWH_J:.0f}, GPU-hours = seconds / {HOUR_S:.0f}, kg = grams /"
        f" {names.KG_G:.0f}"
    )
    yield f"# {units}. Location- and market-based carbon: never add the two.\n"
    yield (
        "# An interval below Prometheus' look-back of 5 minutes, or the recorded lines would have"
        " gaps.\n"
    )
    yield "groups:\n"
    for group in _groups():
        yield f"  - name: {group['name']}\n    interval: {group['interval']}\n    rules:\n"
        for rule in group["rules"]:
            for at, (key, value) in enumerate(rule.items()):
                yield f"      {'-' if at == 0 else ' '} {key}: {json.dumps(value)}\n"


def _groups() -> list[Json]:
    """A day's window outlives any sensible scrape interval."""
    run, part = "run, run_id", "run, run_id, component"
    now = [
        {
            "record": f"run_component:ckptcost_{each.id}:last1d",
            "expr": each.joined("last_over_time([1d])", "", part),
        }
        for each in SHOWN.values()
        if each.id != "checkpoints"
    ]
    now += [
        {
            "record": f"run:ckptcost_{each.id}:last1d",
            "expr": each.joined("last_over_time([1d])", "", run),
        }
        for each in SHOWN.values()
    ]
    grown = [
        {
            "record": f"run:ckptcost_{each.id}:increase{window}",
            "expr": each.joined(f"increase([{window}])", "", run),
        }
        for window in ("1d", "7d", "30d")
        for each in SHOWN.values()
    ]
    lost = SHOWN["gpu_hours_lost"].joined("increase([1d])", "", run)
    gpus = f"(max by ({run}) (last_over_time({names.ACCELERATORS.sample}[1d])) * 24)"
    alert = {
        "alert": "CkptcostGpuTimeLost",
        "expr": f"{lost} / {gpus} > 0.1",
        "for": "1h",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": (
                "{{ $labels.run }} lost {{ $value | humanizePercentage }} of a day's GPU time to"
                " checkpoints and failures"
            ),
            "description": (
                "More than a tenth. See the dashboard 'Checkpoint costs' for the components; change"
                " the share to suit."
            ),
        },
    }
    groups = (
        ("ckptcost_since_run_began", now),
        ("ckptcost_in_windows", grown),
        ("ckptcost_alerts", [alert]),
    )
    return [{"name": name, "interval": "4m", "rules": each} for name, each in groups]
