"""Holds .bicep and .bicepparam files to the vendor's types.

    check.py FILE...

What it looks at, of both sides of a condition: whether a file parses; names that are not declared, or not used; of
resources the type and its version, names of members, which of them are required, and literal values; the parameters of
modules and of parameter files. Functions, and what an expression reads of a resource, are evaluate.py's.

It is stricter than the vendor, who takes other texts in many places where a list of texts is given.
"""

import json
import pathlib
import sys

from syntax import NOT_LITERAL, broken, declarations, line, literal, members, parse, parts, text, using

TYPES = {
    name.lower(): type_
    for name, type_ in json.loads(pathlib.Path(__file__).with_name("types.json").read_text())["types"].items()
}
OF_EVERY_RESOURCE = {"parent", "scope", "dependsOn"}
PYTHON_TYPES = {"string": str, "int": int, "bool": bool, "array": list, "object": dict}


class File:
    def __init__(self, path):
        self.path, self.findings = path, []
        self.root = parse(path)
        self.declarations = [] if broken(self.root) else declarations(self.root)
        self.by_name = {declaration.name: declaration for declaration in self.declarations}

    def report(self, node, message):
        self.findings.append(f"{self.path}:{line(node)}: {message}")

    def check(self):
        if error := broken(self.root):
            self.report(error, "does not parse")
            return self.findings
        self.names()
        for declaration in self.declarations:
            if declaration.kind == "parameter" and declaration.value:
                self.parameter_value(declaration.name, declaration, declaration.value)
            if declaration.kind == "resource":
                self.resource(declaration)
            if declaration.kind == "module":
                self.module(declaration)
        if self.path.suffix == ".bicepparam":
            self.parameters_of(using(self.root), {d.name: d.value for d in self.declarations}, self.root)
        return self.findings

    # Names

    def names(self):
        used = set()
        self.uses(self.root, set(), used)
        for declaration in self.declarations:
            if declaration.kind in ("parameter", "variable") and declaration.name not in used:
                if self.path.suffix != ".bicepparam":
                    self.report(declaration.node, f"{declaration.name} is not used")

    def uses(self, node, local, used):
        """Reports names that are not declared, and collects those that are used. local are those of loops."""
        if node.type == "identifier":
            used.add(text(node))
            if text(node) not in local and text(node) not in self.by_name:
                self.report(node, f"{text(node)} is not declared")
            return
        children = parts(node)
        if node.type == "for_statement":
            loop = children[0]
            local = local | {text(name) for name in (parts(loop) or [loop])}
            children = children[1:]
        elif node.type == "call_expression":
            children = children[1:]
        elif node.type == "object_property" or node.type.endswith("_declaration"):
            children = children[children[0].type == "identifier" :]
        elif node.type in ("decorators", "type", "using_statement"):
            return
        elif node.type == "resource_expression":
            above, inside = (text(child) for child in children)
            if inside not in self.by_name:
                self.report(node, f"{inside} is not declared")
            children = children[:1]
        for child in children:
            self.uses(child, local, used)

    # Resources

    def resource(self, declaration):
        type_ = TYPES.get(declaration.what.lower())
        if type_ is None:
            self.report(declaration.node, f"the type {declaration.what} is not in types.json (reduce.py adds it)")
        elif declaration.existing:
            if "name" not in members(declaration.value):
                self.report(declaration.node, f"{declaration.name}: name is required")
        else:
            self.value(declaration.name, declaration.value, type_)

    def value(self, where, node, type_):
        """Compares a value with its type. where is the way to it, for the reader."""
        if node.type in ("parenthesized_expression", "ternary_expression", "if_statement", "for_statement"):
            skipped = {"ternary_expression": 1, "if_statement": 1, "for_statement": 2}.get(node.type, 0)
            for part in parts(node)[skipped:]:
                self.value(where, part, type_[0] if node.type == "for_statement" and type_ != "any" else type_)
        elif node.type == "call_expression" and text(parts(node)[0]) == "union":
            for argument in parts(parts(node)[1]):
                self.value(where, argument, type_)
        elif node.type == "array":
            if isinstance(type_, list):
                for i, item in enumerate(parts(node)):
                    self.value(f"{where}[{i}]", item, type_[0])
            elif type_ != "any":
                self.report(node, f"{where}: a list, and not {described(type_)}")
        elif node.type == "object":
            if isinstance(type_, dict):
                self.members(where, node, type_)
            elif type_ != "any":
                self.report(node, f"{where}: an object, and not {described(type_)}")
        elif (found := literal(node)) is not NOT_LITERAL and found is not None:
            if not takes(type_, found):
                self.report(node, f"{where}: {found!r}, and not {described(type_)}")

    def members(self, where, node, type_):
        given = members(node)
        if "?" in type_:
            kind = literal(given[type_["?"]]) if type_["?"] in given else None
            if kind not in type_:
                self.report(node, f"{where}.{type_['?']}: not one of {sorted(set(type_) - {'', '?'})}")
                return
            type_ = type_[""] | type_[kind]
        known = {name.rstrip("!~"): (name, inner) for name, inner in type_.items()}
        for name, value in given.items():
            marked, inner = known.get(name, known.get("*", ("", None)))
            if not marked and name in OF_EVERY_RESOURCE and "." not in where:
                continue
            if not marked or marked.endswith("~"):
                self.report(value, f"{where}.{name}: {'can only be read' if marked else 'is not known'}")
            else:
                self.value(f"{where}.{name}", value, inner)
        for name in known:
            if known[name][0].endswith("!") and name not in given:
                self.report(node, f"{where}.{name} is required")

    # Parameters

    def module(self, declaration):
        given = members(declaration.value)
        for name in {"name", "params"} - set(given):
            self.report(declaration.node, f"{declaration.name}.{name} is required")
        self.parameters_of(declaration.what, members(given["params"]) if "params" in given else {}, declaration.node)

    def parameters_of(self, template, given, node):
        """Compares the parameters of a module, or of a parameter file, with those that its template declares."""
        path = self.path.parent / (template or "")
        if not path.is_file():
            self.report(node, f"there is no template {template}")
            return
        declared = {d.name: d for d in declarations(parse(path)) if d.kind == "parameter"}
        for name, value in given.items():
            if name in declared:
                self.parameter_value(name, declared[name], value)
            else:
                self.report(value, f"{path.name} has no parameter {name}")
        for name, declaration in declared.items():
            if name not in given and declaration.value is None:
                self.report(node, f"the parameter {name} of {path.name} is required")

    def parameter_value(self, name, declaration, value):
        """Compares a literal value with a parameter's type and decorators."""
        found = {"array": [], "object": {}}.get(value.type, literal(value))
        if found is NOT_LITERAL:
            return
        if type(found) is not PYTHON_TYPES[declaration.type]:
            self.report(value, f"{name}: {text(value)[:30]}, and not {declaration.type}")
            return
        size = len(found) if declaration.type == "string" else found
        for decorator, arguments in declaration.decorators.items():
            bound = literal(arguments[0]) if arguments else None
            if (
                (decorator in ("minValue", "minLength") and size < bound)
                or (decorator in ("maxValue", "maxLength") and size > bound)
                or (decorator == "allowed" and found not in [literal(option) for option in parts(arguments[0])])
            ):
                self.report(value, f"{name}: {text(value)[:30]}, and not @{decorator}({text(arguments[0])})")


def takes(type_, found):
    if not isinstance(type_, str) or type_ == "any":
        return type_ == "any"
    options = type_.split(" | ")
    if isinstance(found, str):
        return f"'{found}'" in options or options == ["string"]
    return type(found) is PYTHON_TYPES.get(type_)


def described(type_):
    return type_ if isinstance(type_, str) else {list: "a list", dict: "an object"}[type(type_)]


def check(paths):
    """The findings in files."""
    return [finding for path in paths for finding in File(pathlib.Path(path)).check()]


if __name__ == "__main__":
    findings = check(sys.argv[1:])
    print("\n".join(findings) or f"bicep: no finding in {len(sys.argv) - 1} files")
    sys.exit(1 if findings else 0)
