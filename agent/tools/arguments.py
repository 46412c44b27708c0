"""Arguments of tool calls: one type is the schema that the model sees and the check that its call must pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from agent.exceptions import ToolArgumentsInvalid
from agent.models.base import ToolSpec
from agent.tools.registry import Handler, Tool

#: Longest arguments that are read at all, in characters; the largest message that an adapter takes is 1 MiB too.
MAX_ARGUMENTS_CHARS = 1_048_576

_ECHO_CHARS = 200
_WHY_CHARS = 300
_LIST_CHARS = 1_000
_NULL = {"type": "null"}


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the argument types of our own tools."""


def tool_of(
    name: str,
    description: str,
    arguments: type[msgspec.Struct],
    handler: Handler,
    *,
    gated: bool = False,
    repeatable: bool = False,
) -> Tool:
    """A tool whose schema is made from the type that its arguments decode into."""
    spec = ToolSpec(name, description, parameters_of(arguments))
    return Tool(spec, handler, gated=gated, arguments=arguments, repeatable=repeatable)


def parameters_of(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of ``arguments`` as one plain object: no ``$ref``, no title, ``X | None`` shown as ``X``.

    Providers differ in how much of JSON Schema they take; this much all of them do.

    Raises:
        ValueError: the type refers to itself, so that it cannot be written out.
    """
    schema = msgspec.json.schema(arguments)
    definitions: dict[str, Any] = schema.pop("$defs", {})
    flat: dict[str, Any] = _flatten(schema, definitions, ())
    flat.pop("description", None)  # the docstring of the type is for us
    return flat


def parse_arguments(tool: Tool, raw: str) -> dict[str, Any]:
    """The arguments of a call, checked.

    Raises:
        ToolArgumentsInvalid: they are no JSON object or do not fit; the message tells the model why, what it wrote
            (bounded) and what the tool takes.
    """
    if len(raw) > MAX_ARGUMENTS_CHARS:
        raise _invalid(tool, raw, f"they are longer than {MAX_ARGUMENTS_CHARS} characters")
    try:
        if tool.arguments is not None:
            checked = msgspec.to_builtins(msgspec.json.decode(raw, type=tool.arguments))
        else:
            checked = msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.ValidationError as error:
        raise _invalid(tool, raw, _cut(str(error), _WHY_CHARS)) from error
    except (ValueError, RecursionError) as error:
        raise _invalid(tool, raw, "they are not one whole JSON object") from error
    arguments: dict[str, Any] = checked
    return arguments


def describe_parameters(schema: Mapping[str, Any]) -> str:
    """One line that names the parameters of an object schema, bounded."""
    required = schema.get("required", ())
    parts = [
        f"{name} ({_kind(value)}{', required' if name in required else ''})"
        for name, value in schema.get("properties", {}).items()
    ]
    return _cut(", ".join(parts), _LIST_CHARS) or "none"


def _invalid(tool: Tool, raw: str, why: str) -> ToolArgumentsInvalid:
    name = tool.spec.name
    return ToolArgumentsInvalid(
        f"{name} was not run: its arguments do not fit: {why}. You wrote: {_cut(raw, _ECHO_CHARS) or '(nothing)'}\n"
        f"Parameters of {name}: {describe_parameters(tool.spec.parameters)}. Give them as one JSON object."
    )


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    kind = schema.get("type", "any")
    return kind if isinstance(kind, str) else " or ".join(map(str, kind))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text)} characters in all)"


def _flatten(node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list | tuple):
        return [_flatten(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    if (reference := node.get("$ref")) is not None:
        name = str(reference).rpartition("/")[2]
        if name in inside:
            raise ValueError(f"the schema of {name} refers to itself")
        return _flatten(definitions[name], definitions, (*inside, name))
    if (options := node.get("anyOf")) is not None and _NULL in options:
        return _without_null(node, [option for option in options if option != _NULL], definitions, inside)
    return {
        key: _properties(value, definitions, inside) if key == "properties" else _flatten(value, definitions, inside)
        for key, value in node.items()
        if key != "title"
    }


def _properties(node: Mapping[str, Any], definitions: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    """Keys are names of parameters here, so that one called ``title`` stays."""
    return {name: _flatten(value, definitions, inside) for name, value in node.items()}


def _without_null(
    node: Mapping[str, Any], options: list[Any], definitions: Mapping[str, Any], inside: tuple[str, ...]
) -> Any:
    rest = {key: value for key, value in node.items() if key != "anyOf" and (key, value) != ("default", None)}
    merged = {**options[0], **rest} if len(options) == 1 else {**rest, "anyOf": options}
    return _flatten(merged, definitions, inside)
