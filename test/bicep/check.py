"""Compares evaluated values with the vendor's types, and with the parameters of a template."""

import json
import pathlib

from syntax import literal, parts, text

TYPES = {
    name.lower(): type_
    for name, type_ in json.loads(pathlib.Path(__file__).with_name("types.json").read_text())["types"].items()
}
PYTHON_TYPES = {"string": str, "int": int, "bool": bool, "array": list, "object": dict}


def misfits(where, value, type_):
    """What is wrong with a value of a type of types.json (reduce.py has its forms). where is the way to the value.

    It is stricter than the vendor, who takes other texts in many places where texts are listed."""
    if type_ == "any" or value is None:
        return
    if isinstance(type_, dict) and isinstance(value, dict):
        yield from misfits_of_members(where, value, type_)
    elif isinstance(type_, list) and isinstance(value, list):
        for i, item in enumerate(value):
            yield from misfits(f"{where}[{i}]", item, type_[0])
    elif isinstance(type_, str) and isinstance(value, str):
        options = type_.split(" | ")
        if f"'{value}'" not in options and options != ["string"]:
            yield f"{where}: {value!r}, and not {type_}"
    elif not isinstance(type_, str) or type(value) is not PYTHON_TYPES.get(type_):
        yield f"{where}: {value!r:.40}, and not {type_!s:.40}"


def misfits_of_members(where, value, type_):
    if "?" in type_:
        kind = value.get(type_["?"])
        if kind not in type_:
            yield f"{where}.{type_['?']}: {kind!r}, and not one of {sorted(set(type_) - {'', '?'})}"
            return
        type_ = type_[""] | type_[kind]
    known = {name.rstrip("!~"): (name, inner) for name, inner in type_.items()}
    for name, item in value.items():
        marked, inner = known.get(name, known.get("*", ("", None)))
        if not marked or marked.endswith("~"):
            yield f"{where}.{name}: {'can only be read' if marked else 'is not known'}"
        else:
            yield from misfits(f"{where}.{name}", item, inner)
    for name, (marked, _) in known.items():
        if marked.endswith("!") and name not in value:
            yield f"{where}.{name} is required"


def misfits_of_parameter(declaration, value):
    """What is wrong with the value of a parameter, by its type and decorators."""
    if type(value) is not PYTHON_TYPES[declaration.type]:
        yield f"{declaration.name}: {value!r:.40}, and not {declaration.type}"
        return
    size = len(value) if declaration.type == "string" else value
    for decorator, arguments in declaration.decorators.items():
        bound = literal(arguments[0]) if arguments else None
        if (
            (decorator in ("minValue", "minLength") and size < bound)
            or (decorator in ("maxValue", "maxLength") and size > bound)
            or (decorator == "allowed" and value not in [literal(option) for option in parts(arguments[0])])
        ):
            yield f"{declaration.name}: {value!r:.40}, and not @{decorator}({text(arguments[0])})"
