"""The shipped models/ and data/ files, read with nothing but tomllib, csv and the unit parser.

No loader of ours takes part, so that a mistake in the loader cannot hide a mistake in the data.
"""

from __future__ import annotations

import csv
import functools
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ckptcost.first.core.units import parse

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "data"
KINDS = ("checkpoints", "tiers", "clusters", "sites")
TOMLS = sorted(path for kind in KINDS for path in (ROOT / "models" / kind).glob("*.toml"))
OTHERS = sorted(
    [
        *(ROOT / "models" / "scenarios").glob("*.toml"),
        *(ROOT / "models" / "claims").glob("*.toml"),
        *(ROOT / "models").glob("*.toml"),
    ]
)
CSVS = sorted(DATA.glob("*.csv"))
BASES = {"measured", "published", "vendor", "user", "assumed", "derived"}

# the key in a file -> the unit its text must have
KEYS: dict[str, dict[str, str]] = {
    "checkpoints": {
        "params": "",
        "bytes_per_param": "bytes_per_param",
        "extra": "bytes",
        "size": "bytes",
        "files": "",
        "replicas_writing": "",
        "straggler_factor": "",
        "full_every": "",
        "delta_fraction": "",
        "compression_ratio": "",
        "compress_rate": "bytes_per_s",
    },
    "tiers": {
        "write": "bytes_per_s",
        "read": "bytes_per_s",
        "node_write": "bytes_per_s",
        "node_read": "bytes_per_s",
        "gpu_write": "bytes_per_s",
        "gpu_read": "bytes_per_s",
        "write_per_capacity": "per_s",
        "read_per_capacity": "per_s",
        "capacity": "bytes",
        "setup": "s",
        "files_rate": "files_per_s",
        "rate_spread": "",
        "read_rate_spread": "",
        "save_time": "s",
        "timed_size": "bytes",
        "write_energy": "j_per_byte",
        "active_power": "w",
        "idle_power": "w",
        "network_energy": "j_per_byte",
        "storage_price": "usd_per_byte_s",
        "write_price": "usd_per_byte",
        "request_price": "usd_per_request",
        "request_size": "bytes",
        "standing_price": "usd_per_s",
        "drive_writes": "per_s",
    },
    "clusters": {
        "gpus": "",
        "gpus_per_node": "",
        "gpu_train": "w",
        "gpu_stall": "w",
        "gpu_idle": "w",
        "host_train": "w",
        "host_stall": "w",
        "host_idle": "w",
        "gpu_d2h": "bytes_per_s",
        "node_nic": "bytes_per_s",
        "node_ram": "bytes",
        "gpu_price": "usd_per_gpu_s",
        "gpu_embodied": "kgco2e_per_gpu_s",
        "readers_per_byte": "",
    },
    "sites": {
        "pue": "",
        "tariff": "usd_per_j",
        "grid_location": "kgco2e_per_j",
        "grid_market": "kgco2e_per_j",
    },
    "accelerators": {
        "tdp": "w",
        "memory": "bytes",
        "gpu_idle": "w",
        "gpus_per_node": "",
        "gpu_d2h": "bytes_per_s",
        "gpu_train": "w",
        "host_train": "w",
        "gpu_price": "usd_per_gpu_s",
        "gpu_embodied": "kgco2e_per_gpu_s",
        "embodied_card": "kgco2e",
        "train_power_measured": "w",
    },
}
HEADS: dict[str, set[str]] = {
    "checkpoints": {"id", "name", "kind", "note", "basis", "source", "about"},
    "tiers": {
        "id",
        "name",
        "kind",
        "note",
        "basis",
        "source",
        "survives",
        "boundary",
        "in_memory",
        "billed_on",
        "claim",
    },
    "clusters": {
        "id",
        "name",
        "note",
        "basis",
        "source",
        "accelerator",
        "price_includes_electricity",
    },
    "sites": {"id", "name", "note", "basis", "source", "grid"},
}
ENUMS = {
    ("checkpoints", "kind"): {"published", "vendor-claim", "estimate", "benchmark"},
    ("tiers", "kind"): {"vendor-claim", "benchmark", "datasheet", "cloud", "generic", "measured"},
    ("tiers", "survives"): {"process", "node", "site"},
    ("tiers", "boundary"): {"drive", "storage-system", "node", "cluster", "facility"},
}
COLUMNS = {
    "async_measured": "key,value,bound,system,conditions,source,note",
    "accelerators": "id,name,vendor,kind,note",
    "accelerator_figures": "id,key,value,low,high,basis,source,note",
    "gpu_prices": "id,provider,usd_per_gpu_h,date,basis,source,note",
    "grids": "id,name,scope,method,gco2e_per_kwh,year,basis,source,licence,note",
    "failure_rates": "id,gpus,gpus_per_node,mtbf,fit,basis,source,note",
    "published_saves": (
        "id,system,printed,size,params,bytes_per_param,save_time,load_time,basis,source,note"
    ),
    "tariffs": "id,name,price_per_kwh,currency,year,basis,source,licence,note",
    "pue": "id,name,pue,wue_l_per_kwh,year,basis,source,note",
    "mlperf_checkpoint": (
        "round,submitter,system,model,accelerators,client_hosts,checkpoint_gib,save_gib_s,save_sd_gib_s,save_gb_s,save_s,"
        "load_gib_s,load_sd_gib_s,load_gb_s,load_s,nameplate_w,usable_tib,nameplate_kwh_per_save,basis,source,note"
    ),
    "checkpoint_sizes": (
        "id,model,params_b,size_as_published,size_gb,bytes_per_param,contains,basis,source,note"
    ),
}
SOURCE_KINDS = {
    "paper",
    "datasheet",
    "repository",
    "vendor-page",
    "price-list",
    "measurement",
    "standard",
    "survey",
    "derived",
}
SOURCE_KEYS = {
    "title",
    "publisher",
    "url",
    "no_url",
    "version",
    "retrieved",
    "licence",
    "kind",
    "secondary",
}
# what the three background documents name -> the tier that stands for it
NAMED = {
    "traditional NAS": "nas-hdd",
    "generic parallel file system": "generic-pfs",
    "generic SSD system": "generic-ssd",
    "EXAScaler": "ddn-exascaler",
    "EXAScaler at 20 GB/s": "ddn-exascaler-20",
    "EXAScaler at 40 GB/s": "ddn-exascaler-40",
    "AI400X2": "ddn-ai400x2",
    "NFS": "nfs-generic",
    "DGX SuperPOD": "superpod-best",
    "PCIe Gen4 7.68 TB": "micron-gen4-7680",
    "PCIe Gen5 7.68 TB": "micron-gen5-7680",
    "PCIe Gen5 60 TB": "micron-gen5-60tb",
    "the SSD of the trace": "micron-mlperf-trace",
    "local storage": "micron-local",
    "local NVMe": "local-nvme",
    "local memory": "node-ram",
    "flash-optimised shared": "flash-shared",
    "flash with GPU Direct": "flash-shared-gds",
    "hard-drive network storage": "hdd-network",
    "object storage": "object-store",
}
# METHOD section 1: GiB, and the shape it follows from (vocab, hidden, layers, ffn, heads, kv heads,
# tp, pp, dp)
GOLDEN = {
    "mlperf-8b": (104.70452117919922, (128256, 4096, 32, 14336, 32, 8, 1, 1, 8)),
    "mlperf-70b": (911.2121276855469, (128256, 8192, 80, 28672, 128, 8, 8, 1, 8)),
    "mlperf-405b": (5292.248718261719, (128256, 16384, 126, 53248, 128, 8, 8, 32, 2)),
    "mlperf-1t": (15426.589264154434, (128256, 25872, 128, 98304, 192, 32, 8, 64, 2)),
}
LOCAL = re.compile(
    r"(?:^|[\s\"'(=])(?:/(?:home|tmp|root|work|usr|mnt|opt|var|Users|data|scratch)/|~/|[A-Z]:\\|file://)|localhost"
)
REGISTRY = re.compile(
    r"\b(?:pypi|npmjs|crates|docker|ghcr|conda|anaconda|artifactory|nexus|mirrors?|registry)\b|pythonhosted|goproxy",
    re.I,
)


@functools.cache
def toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


@functools.cache
def table(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def sources() -> dict[str, Any]:
    return toml(DATA / "sources.toml")


def named(text: str) -> list[str]:
    return [part.strip() for part in text.split(";")]


def figures(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(key, unit, the figure with the file's basis and source filled in) for every figure and claim
    of a file."""
    content, units = toml(path), KEYS[path.parent.name]
    default = {"basis": content.get("basis"), "source": content.get("source")}
    for key, value in content.items():
        if key in units:
            yield (
                key,
                units[key],
                default | (value if isinstance(value, dict) else {"value": value}),
            )
    for number, claim in enumerate(content.get("claim", [])):
        what = f"claim {number}"
        yield (
            what,
            {"time": "s", "energy": "j"}[claim["what"]],
            default | {k: v for k, v in claim.items() if k not in ("what", "size")},
        )
        yield f"{what} size", "bytes", default | {"value": claim["size"]}


def check(unit: str, value: Any, low: Any, high: Any, basis: Any, source: Any) -> None:
    """One figure: it parses, it lies in its range, it says how we know and from where."""
    number = parse(value, unit)
    assert number >= 0
    assert (low is None) == (high is None), "low and high come together"
    if low is not None:
        assert parse(low, unit) <= number <= parse(high, unit), (
            f"{low} <= {value} <= {high} does not hold"
        )
    assert basis in BASES, basis
    unknown = [name for name in named(source) if name not in sources()]
    assert not unknown, f"not in sources.toml: {unknown}"


def label(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", TOMLS, ids=label)
def test_entity(path: Path) -> None:
    content, kind = toml(path), path.parent.name
    assert content["id"] == path.stem
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", path.stem), "ids are lower case ASCII with hyphens"
    unknown = content.keys() - HEADS[kind] - KEYS[kind].keys()
    assert not unknown, f"unknown keys {sorted(unknown)}"
    missing = (
        HEADS[kind]
        - {"about", "claim", "grid", "in_memory", "billed_on", "price_includes_electricity"}
        - content.keys()
    )
    assert not missing, f"missing keys {sorted(missing)}"
    for (where, key), allowed in ENUMS.items():
        assert where != kind or content[key] in allowed, f"{key} = {content[key]!r}"
    assert content["basis"] in BASES
    assert all(name in sources() for name in named(content["source"]))
    for key, value in content.items():
        if isinstance(value, dict) and key != "about":
            assert value.keys() <= {
                "value",
                "low",
                "high",
                "basis",
                "source",
                "note",
                "boundary",
                "date",
            }, key
            assert value.get("boundary", "drive") in ENUMS["tiers", "boundary"], key
    for claim in content.get("claim", []):
        assert claim.keys() <= {"what", "size", "value", "low", "high", "basis", "source", "note"}
        assert {"what", "size", "value", "basis", "source"} <= claim.keys()
    for value in content.get("about", {}).values():
        assert isinstance(value, str | int | float)


@pytest.mark.parametrize("path", TOMLS, ids=label)
def test_figures_of_an_entity(path: Path) -> None:
    for key, unit, figure in figures(path):
        try:
            check(
                unit,
                figure["value"],
                figure.get("low"),
                figure.get("high"),
                figure["basis"],
                figure["source"],
            )
        except Exception as error:
            error.add_note(f"{label(path)}: {key}")
            raise


@pytest.mark.parametrize("path", CSVS, ids=lambda path: path.stem)
def test_table(path: Path) -> None:
    rows = table(path.stem)
    assert path.stem in COLUMNS, "a table the specification does not know"
    assert rows
    assert ",".join(rows[0]) == COLUMNS[path.stem]
    for row in rows:
        assert None not in {*row, *row.values()}, f"ragged row: {row}"
        assert re.fullmatch(r"[A-Za-z0-9][a-zA-Z0-9:-]*", row.get("id", "x")), row
        if "basis" in row:
            assert row["basis"] in BASES, row
            assert all(name in sources() for name in named(row["source"])), row


@pytest.mark.parametrize("name", ["accelerators", "grids", "tariffs", "pue", "checkpoint_sizes"])
def test_ids_of_a_table_are_unique(name: str) -> None:
    twice = [key for key, count in Counter(row["id"] for row in table(name)).items() if count > 1]
    assert not twice


def test_every_table_and_kind_is_there() -> None:
    assert {path.stem for path in CSVS} == set(COLUMNS)
    assert {path.parent.name for path in TOMLS} == set(KINDS)


def test_accelerator_figures() -> None:
    ids, units = {row["id"] for row in table("accelerators")}, KEYS["accelerators"]
    rows = table("accelerator_figures")
    assert {row["id"] for row in rows} <= ids
    assert max(Counter((row["id"], row["key"]) for row in rows).values()) == 1, (
        "a figure stands in two rows"
    )
    for row in rows:
        try:
            check(
                units[row["key"]],
                row["value"],
                row["low"] or None,
                row["high"] or None,
                row["basis"],
                row["source"],
            )
        except Exception as error:
            error.add_note(f"{row['id']}: {row['key']}")
            raise


def test_prices_grids_tariffs_and_pue_are_plausible_numbers() -> None:
    ids = {row["id"] for row in table("accelerators")}
    assert {row["id"] for row in table("gpu_prices")} <= ids
    assert all(0.1 < float(row["usd_per_gpu_h"]) < 30 for row in table("gpu_prices"))
    assert all(1 < float(row["gco2e_per_kwh"]) < 1500 for row in table("grids")), (
        "gCO2e/kWh, not kg"
    )
    assert all(
        0.01 < float(row["price_per_kwh"]) < 1 and row["currency"] in ("EUR", "USD")
        for row in table("tariffs")
    )
    assert all(1 < float(row["pue"]) < 2 for row in table("pue"))
    assert all(parse(f"{row['gco2e_per_kwh']} g/kWh", "kgco2e_per_j") > 0 for row in table("grids"))


def test_a_price_carries_its_date() -> None:
    """As exactly as it is known: the day, the month or the year it was read; or the note says that
    none is given."""
    for row in table("gpu_prices"):
        dated = re.fullmatch(r"20\d\d(-\d\d(-\d\d)?)?", row["date"])
        assert dated or "no date given" in row["note"], row


def test_gpu_price_is_spanned_by_the_price_list() -> None:
    listed: dict[str, list[float]] = {}
    for row in table("gpu_prices"):
        listed.setdefault(row["id"], []).append(float(row["usd_per_gpu_h"]))
    for row in table("accelerator_figures"):
        if row["key"] == "gpu_price" and row["basis"] != "assumed":
            for text in filter(None, (row["low"], row["high"])):
                assert any(
                    parse(text, "usd_per_gpu_s") * 3600 == pytest.approx(price)
                    for price in listed[row["id"]]
                ), row


def test_what_is_assumed_of_an_accelerator_has_a_range_and_a_reason() -> None:
    for row in table("accelerator_figures"):
        if row["basis"] == "assumed" and row["key"] != "gpus_per_node":
            assert row["low"], row
            assert row["high"], row
            assert len(row["note"]) > 20, row


def test_an_assumed_price_lies_between_prices_that_are_listed() -> None:
    """Outside them only what nobody rents out yet."""
    announced = {"vr200"}
    listed = [float(row["usd_per_gpu_h"]) for row in table("gpu_prices")]
    for row in table("accelerator_figures"):
        if row["key"] == "gpu_price" and row["basis"] == "assumed" and row["id"] not in announced:
            low, high = (parse(row[end], "usd_per_gpu_s") * 3600 for end in ("low", "high"))
            assert low > 0.1, row
            assert high < 2 * max(listed), row


def test_mlperf_table_agrees_with_itself() -> None:
    for row in table("mlperf_checkpoint"):
        for way in ("save", "load"):
            gib, gb, seconds = (row[f"{way}_gib_s"], row[f"{way}_gb_s"], row[f"{way}_s"])
            if gib:
                assert float(gb) == pytest.approx(float(gib) * 2**30 / 1e9, rel=1e-3), row["system"]
            if gib and seconds:
                # the rate is a mean of rates: at or above size over mean time, far above where
                # loads scatter
                high = {"save": 1.2, "load": 1.6}[way]
                assert 0.99 < float(gib) * float(seconds) / float(row["checkpoint_gib"]) < high, (
                    row["system"]
                )
        if row["nameplate_kwh_per_save"]:
            kwh = float(row["nameplate_w"]) * float(row["save_s"]) / 3.6e6
            assert float(row["nameplate_kwh_per_save"]) == pytest.approx(kwh, rel=1e-2)


@pytest.mark.parametrize("name", sorted(sources()))
def test_source(name: str) -> None:
    entry = sources()[name]
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", name)
    assert entry.keys() <= SOURCE_KEYS
    assert {"title", "publisher", "kind"} <= entry.keys()
    assert entry["kind"] in SOURCE_KINDS
    assert ("url" in entry) != ("no_url" in entry), "an address, or why there is none"
    assert entry.get("url", "https://").startswith("https://")
    assert len(entry.get("no_url", "read nowhere")) > 10
    assert entry.get("secondary", True) is True
    assert name in used_sources(), "nothing uses this source"


@pytest.mark.parametrize(
    "path", [path for path in TOMLS if "tiers" in path.parts], ids=lambda path: path.stem
)
def test_a_price_of_a_tier_carries_its_date(path: Path) -> None:
    for _, key, figure in figures(path):
        if key.endswith("_price"):
            dated = [sources()[name].get("version", "") for name in named(figure["source"])]
            assert figure["basis"] == "assumed" or any(re.search(r"20\d\d", d) for d in dated), key


@functools.cache
def used_sources() -> frozenset[str]:
    texts = [row["source"] for path in CSVS for row in table(path.stem) if row.get("source")]
    for path in TOMLS:
        texts.append(toml(path)["source"])
        texts += [figure["source"] for _, _, figure in figures(path)]
    texts += [text for path in OTHERS for text in cited(toml(path))]
    for page in (ROOT / "docs").rglob("*.md"):
        texts += re.findall(r"\[`([\w-]+)`\](?!\()", page.read_text("utf-8"))
    return frozenset(name for text in texts for name in named(text))


def cited(part: Any) -> Iterator[str]:
    """Every source named anywhere below."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "source" and isinstance(value, str):
                yield value
            else:
                yield from cited(value)
    elif isinstance(part, list):
        for value in part:
            yield from cited(value)


@pytest.mark.parametrize("path", OTHERS, ids=label)
def test_sources_of_scenarios_and_defaults_resolve(path: Path) -> None:
    unknown = {name for text in cited(toml(path)) for name in named(text)} - sources().keys()
    assert not unknown, f"not in sources.toml: {sorted(unknown)}"


def test_counts() -> None:
    count = Counter(path.parent.name for path in TOMLS)
    assert count["checkpoints"] >= 40
    assert count["tiers"] >= 60
    assert count["clusters"] >= 17
    assert count["sites"] >= 12
    assert len(table("accelerators")) >= 30
    assert sum(row["scope"].startswith("country") for row in table("grids")) >= 170


@pytest.mark.parametrize("what", sorted(NAMED))
def test_storage_named_in_the_background_documents_is_present(what: str) -> None:
    assert (ROOT / "models" / "tiers" / f"{NAMED[what]}.toml").is_file()


@pytest.mark.parametrize(
    "path", [path for path in TOMLS if path.parent.name in ("clusters", "sites")], ids=label
)
def test_references_resolve(path: Path) -> None:
    content = toml(path)
    if "accelerator" in content:
        assert content["accelerator"] in {row["id"] for row in table("accelerators")}
    if "grid" in content:
        assert content["grid"] in {row["id"] for row in table("grids")}


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_mlperf_size_is_golden(name: str) -> None:
    gib, (vocab, hidden, layers, ffn, heads, kv, tp, pp, dp) = GOLDEN[name]
    content = toml(ROOT / "models" / "checkpoints" / f"{name}.toml")
    size, params = parse(content["size"]["value"], "bytes"), content["params"]["value"]
    assert size == pytest.approx(gib * 2**30, rel=1e-9)

    d_kv = hidden // heads * kv
    norms = layers * 2 * hidden + hidden
    assert params == 2 * vocab * hidden + norms + layers * (
        hidden * (hidden + 2 * d_kv) + hidden**2 + 3 * hidden * ffn
    )
    ranks = dp * tp * pp
    weights = 2 * (params + (tp - 1) * norms)  # every tensor-parallel rank writes the norms
    optimizer = ranks * 3 * (params // ranks + 5 * hidden) * 4
    assert size == pytest.approx(weights + optimizer, rel=1e-9)


def test_vendor_figures_say_so() -> None:
    for path in TOMLS:
        content = toml(path)
        if content.get("kind") == "vendor-claim":
            assert "(vendor claim" in content["name"], path.stem
            assert content["basis"] == "vendor"


def test_drive_joules_stay_with_drives() -> None:
    """A few joules per GB are a drive; whole systems start above 30."""
    for path in TOMLS:
        content = toml(path)
        for key, unit, figure in figures(path):
            if key == "write_energy" and parse(figure["value"], unit) < 30e-9:
                assert content["boundary"] == "drive", path.stem


@pytest.mark.parametrize("path", [*TOMLS, *CSVS, DATA / "sources.toml"], ids=lambda path: path.stem)
def test_no_local_path_no_registry(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for pattern in (LOCAL, REGISTRY):
        found = pattern.search(text)
        assert not found, f"{found.group()!r} in {path.name}" if found else ""
