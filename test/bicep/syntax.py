"""Bicep files as trees.

The grammar has faults. It reads !a.b as (!a).b, and c ? a : b.c as (c ? a : b).c, which evaluate.py refuses; a call in
a list as two items, of which the first is a name that is not declared; and no parameter files (parse).
"""

import functools
import pathlib
import re

import tree_sitter
import tree_sitter_bicep

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bicep.language()))
ESCAPES = {"\\'": "'", "\\\\": "\\", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\$": "$"}
NOT_LITERAL = object()


def parse(path):
    """The root of a file. The grammar knows no parameter files: their "param a = 1" is read as "var a = 1"."""
    source = pathlib.Path(path).read_text()
    if path.suffix == ".bicepparam":
        source = re.sub(r"^param (?=\w+ *=)", "var   ", source, flags=re.MULTILINE)
    return tree(source).root_node


@functools.lru_cache(maxsize=16)
def tree(source):
    return PARSER.parse(source.encode())


def broken(node):
    """The first node that does not parse, or None."""
    if node.type == "ERROR" or node.is_missing:
        return node
    return next(filter(None, map(broken, node.children)), None) if node.has_error else None


def text(node):
    return node.text.decode()


def line(node):
    return node.start_point[0] + 1


@functools.lru_cache(maxsize=100_000)  # of a hundred templates, each of which is read many times
def parts(node):
    return [child for child in node.named_children if child.type != "comment"]


def literal(node):
    """The value of a literal, NOT_LITERAL for another expression."""
    if node.type == "string" and all(part.type != "interpolation" for part in node.named_children):
        return "".join(ESCAPES.get(text(part), text(part)) for part in node.named_children)
    if node.type == "number":
        return int(text(node))
    return {"true": True, "false": False, "null": None}.get(text(node), NOT_LITERAL)


def members(node):
    """The members of an object by name, without its nested resources. A name with an expression in it is kept as it is
    written."""
    found = {}
    for member in parts(node):
        name, *value = parts(member)
        if value and member.type == "object_property":
            plain = name.type == "string" and literal(name) is not NOT_LITERAL
            found[literal(name) if plain else text(name)] = value[0]
    return found


def nested(node):
    """The resources that are declared in an object."""
    inside = [parts(member)[0] for member in parts(node)]
    return [declaration for declaration in inside if declaration.type == "resource_declaration"]


class Declaration:
    """One of a file's parameters, variables, resources, modules and outputs."""

    def __init__(self, node, above=None):
        name, *rest = [part for part in parts(node) if part.type != "type"]
        self.node, self.above, self.name = node, above, text(name)
        self.kind = node.type.removesuffix("_declaration")
        self.type = next((text(part) for part in parts(node) if part.type == "type"), "")
        self.value = rest[-1] if rest else None
        self.existing = any(child.type == "existing" for child in node.children)
        self.decorators = {}
        self.condition = self.loop = None
        if self.kind in ("resource", "module"):
            self.what = literal(rest[0])
            if self.kind == "resource" and above:
                of, version = above.what.split("@")
                self.what = f"{of}/{self.what}@{version}" if "@" not in self.what else f"{of}/{self.what}"
            if self.value.type == "for_statement":
                self.loop, self.value = self.value, parts(self.value)[-1]
            if self.value.type == "if_statement":
                self.condition, self.value = parts(self.value)
        self.nested = [Declaration(inner, self) for inner in nested(self.value)] if self.kind == "resource" else []

    def with_nested(self):
        return [self] + [inner for child in self.nested for inner in child.with_nested()]


def declarations(root):
    """All declarations of a file, nested resources too."""
    found, decorators = [], {}
    for node in parts(root):
        if node.type == "decorators":
            for decorator in parts(node):
                function, arguments = parts(parts(decorator)[0])
                decorators[text(function)] = parts(arguments)
        elif node.type.endswith("_declaration"):
            declaration = Declaration(node)
            declaration.decorators, decorators = decorators, {}
            found += declaration.with_nested()
    return found


def using(root):
    """What a parameter file names as its template."""
    return next((literal(parts(node)[0]) for node in parts(root) if node.type == "using_statement"), None)
