"""What a file may say: pydantic models built from the key table, so that a key exists in one place only."""

from __future__ import annotations

from functools import cache, partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, InstanceOf, ValidationError, WithJsonSchema, create_model

from ckptcost.catalog.figures import BASES, Figure, figure_of
from ckptcost.catalog.keys import CADENCES, KEYS, LIMITS, SECTIONS, WORDS, meaning_of, unit_of
from ckptcost.core.units import UNITS
from ckptcost.errors import InputError, UnknownName

_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)
_TEXT = Annotated[str, Field(max_length=4000, strict=True)]


def _limited(section: str, key: str, raw: Any) -> Figure:
    if key.endswith("keep_last") and raw == "all":
        return Figure(float("inf"), text="all")
    unit = unit_of(section, key)
    figure = figure_of(raw, unit)
    least, inclusive, most = LIMITS.get(key, (0.0, True, 1e30))
    for value in (figure.value, figure.low, figure.high):
        if value is not None and not ((least <= value if inclusive else least < value) and value <= most):
            bound = f"{'at least' if inclusive else 'more than'} {least:g}" + (f" and at most {most:g}" if most < 1e9 else "")
            raise InputError(f"{figure.text or value!r} is out of range", remedy=f"{key} must be {bound} {unit}".rstrip())
    return figure


def _figure_schema(section: str, key: str) -> dict[str, Any]:
    unit = unit_of(section, key)
    plain: dict[str, Any] = {"type": "string", "examples": [UNITS[unit][1]]} if UNITS[unit][0] else {"type": ["string", "number"]}
    table = {
        "type": "object", "additionalProperties": False, "required": ["value"],
        "properties": {"value": plain, "low": plain, "high": plain, "basis": {"enum": list(BASES)}, "source": {"type": "string"},
                       "boundary": {"type": "string"}, "note": {"type": "string"}},
    }  # fmt: skip
    return {"anyOf": [plain, table], "description": meaning_of(section, key)}


def _word(allowed: tuple[Any, ...], raw: Any) -> Any:
    if allowed in ((str,), (bool,)):
        if not isinstance(raw, allowed[0]):
            raise InputError(f"{raw!r} is not {'text' if allowed == (str,) else 'true or false'}")
        return raw
    if raw not in allowed:
        raise UnknownName("choice", str(raw), allowed)
    return raw


def _fields(section: str) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key in KEYS[section]:
        kind = Annotated[InstanceOf[Figure] | None, BeforeValidator(partial(_limited, section, key)), WithJsonSchema(_figure_schema(section, key))]
        members[key] = (kind, None)
    for word, allowed in WORDS[section].items():
        shape = {"type": "string"} if allowed == (str,) else {"type": "boolean"} if allowed == (bool,) else {"enum": list(allowed)}
        members[word] = (Annotated[Any, BeforeValidator(partial(_word, allowed)), WithJsonSchema(shape)], None)
    return members


@cache
def section_model(section: str) -> type[BaseModel]:
    return create_model(section.title().replace("_", ""), __config__=_STRICT, **_fields(section))


@cache
def scenario_model() -> type[BaseModel]:
    """A scenario file: any sections, each optional, over the scenario it extends."""
    members: dict[str, Any] = {section: (section_model(section) | None, None) for section in SECTIONS}
    compare = create_model("Compare", __config__=_STRICT, tier=(list[_TEXT] | None, None), saves=(list[float] | None, None))
    return create_model(
        "ScenarioFile", __config__=ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, title="ckptcost scenario"),
        schema_version=(Annotated[int, Field(ge=1, le=1, strict=True)] | None, None), id=(_TEXT | None, None), name=(_TEXT | None, None),
        note=(_TEXT | None, None), extends=(_TEXT | None, None), basis=(_TEXT | None, None), source=(_TEXT | None, None), compare=(compare | None, None), **members,
    )  # fmt: skip


class Claim(BaseModel):
    """What somebody says one checkpoint takes; shown beside the model, never an input to it."""

    model_config = _STRICT
    what: str
    size: Any
    value: Any
    low: Any = None
    high: Any = None
    basis: str = "vendor"
    source: str = ""
    note: str = ""


@cache
def entity_model(section: str) -> type[BaseModel]:
    """A catalogue file: who it is, and the figures of its section."""
    members = {key: member for key, member in _fields(section).items() if key not in ("id", "name", "model")}
    return create_model(
        section.title().replace("_", "") + "File", __config__=_STRICT, id=(_TEXT, ...), name=(_TEXT, ...), kind=(_TEXT, ""), note=(_TEXT, ""), basis=(_TEXT, ""),
        source=(_TEXT, ""), about=(dict[str, Any], {}), claim=(list[Claim], []), **members,
    )  # fmt: skip


def checked(model: type[BaseModel], raw: Any, where: str) -> BaseModel:
    """The validated file; the first complaint becomes one message with its place, what was expected and the remedy."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function-"))
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, InputError):
            raise cause.at(where, key) from None
        if first["type"] == "extra_forbidden":
            owner: Any = model
            for part in first["loc"][:-1]:
                owner = next((t for t in _models_in(owner.model_fields[part].annotation)), owner) if part in owner.model_fields else owner
            parent = ".".join(str(part) for part in first["loc"][:-1])
            raise UnknownName("key", str(first["loc"][-1]), owner.model_fields, where=where, key=parent) from None
        raise InputError(first["msg"][0].lower() + first["msg"][1:], where=where, key=key) from None


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    found = [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []
    for part in getattr(annotation, "__args__", ()):
        found += _models_in(part)
    return found


def exclusive_cadence(keys: set[str], where: str) -> None:
    """One cadence at a time."""
    said = sorted(keys & {*CADENCES, "optimal"})
    if len(said) > 1:
        raise InputError(f"{' and '.join(said)} contradict each other", where=where, key="policy", remedy="give one of " + ", ".join((*CADENCES, "optimal")))
