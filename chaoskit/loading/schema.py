"""The JSON Schema of the YAML as users write it, shorthand included, for editors."""

from typing import Any, Literal

from chaoskit.model.manifest import LONG_LIVED, Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.model.script import TOOL_NAME

Kind = Literal["scenario", "manifest"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_CALL = {
    "description": "One tool with its arguments, {tool: {argument: value}}; under `or` "
    "other arguments of the same call, for `wobble: arguments`.",
    "type": "object",
    "properties": {
        "or": {
            "description": "Other arguments of the same call.",
            "type": "array",
            "items": {"type": "object"},
            "minItems": 1,
        }
    },
    "propertyNames": {"pattern": f"^(?:{TOOL_NAME})$"},
    "additionalProperties": {"type": "object"},
    "minProperties": 1,
    "oneOf": [
        {"maxProperties": 1, "not": {"required": ["or"]}},
        {"minProperties": 2, "maxProperties": 2, "required": ["or"]},
    ],
}


_WAYS_TO_RUN = [
    {"required": ["start"], "not": {"anyOf": [{"required": [k]} for k in LONG_LIVED]}},
    {
        "required": list(LONG_LIVED),
        "not": {"anyOf": [{"required": ["start"]}, {"required": ["resume"]}]},
    },
]
_STEPS = {"type": "array", "items": {"$ref": "#/$defs/Step"}, "minItems": 1}


def schema(kind: Kind) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a scenario or a manifest.

    It has every key, type and limit, each with its meaning. The rules between fields,
    and between the two files, are in the loader only.
    """
    model = Scenario if kind == "scenario" else Manifest
    found = _closed(model.model_json_schema(by_alias=True))
    if kind == "scenario":
        _add_shorthand(found["$defs"])
    else:
        found["oneOf"] = _WAYS_TO_RUN
    return {"$schema": DIALECT, **found}


def _add_shorthand(definitions: dict[str, Any]) -> None:
    definitions["Call"] = _CALL
    call = definitions["CallTurn"]["properties"]["call"]
    parallel = {key: call.pop(key) for key in ("type", "items", "minItems")}
    step = {"anyOf": [{"$ref": "#/$defs/Call"}, parallel]}
    call |= step
    definitions["CallTurn"]["properties"]["or"] |= _STEPS
    definitions["CallTurn"]["properties"]["or"].pop("anyOf", None)
    definitions["Step"] = step
    tool = definitions["Tool"]
    definitions["ToolInFull"] = tool
    choices = [{"$ref": "#/$defs/ToolClass"}, {"$ref": "#/$defs/ToolInFull"}]
    definitions["Tool"] = {"description": tool["description"], "anyOf": choices}


def _closed(found: Any) -> Any:
    """Mappings whose keys follow a pattern take no other keys."""
    if isinstance(found, list):
        return [_closed(each) for each in found]
    if not isinstance(found, dict):
        return found
    closed = {key: _closed(each) for key, each in found.items()}
    return closed | (
        {"additionalProperties": False} if "patternProperties" in found else {}
    )
