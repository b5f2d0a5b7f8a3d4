"""Says what a parameter file would deploy, without Azure.

Ids and names that Azure makes up are stand-ins. What is not known here is an error, so that nothing passes for less
than it is: functions of time and of chance too.
"""

import hashlib
import json
import uuid

from syntax import ESCAPES, NOT_LITERAL, declarations, line, literal, members, parse, parts, text, using

SUBSCRIPTION = "/subscriptions/00000000-0000-4000-8000-000000000001"
GROUP = {"id": f"{SUBSCRIPTION}/resourceGroups/group", "name": "group", "location": "westeurope"}
TENANT = "00000000-0000-4000-8000-000000000002"
ENVIRONMENT = {
    "suffixes": {"sqlServerHostname": ".database.windows.net"},
    "authentication": {"loginEndpoint": "https://login.microsoftonline.com/"},
}
# What only Azure knows of a resource, by type; {name} is the resource's name.
OF_AZURE = {
    "Microsoft.ManagedIdentity/userAssignedIdentities": {
        "clientId": "00000000-0000-4000-8000-000000000003",
        "principalId": "00000000-0000-4000-8000-000000000004",
    },
    "Microsoft.Storage/storageAccounts": {"primaryEndpoints": {"blob": "https://{name}.blob.core.windows.net/"}},
    "Microsoft.Insights/components": {
        "ConnectionString": "InstrumentationKey=00000000-0000-4000-8000-000000000005",
    },
    "Microsoft.Web/sites": {"defaultHostName": "{name}.azurewebsites.net"},
}


def digest(values):
    return hashlib.sha256(json.dumps(values).encode())


def empty(value):
    return value is None or len(value) == 0


def union(*values):
    if isinstance(values[0], list):
        return list(dict.fromkeys(item for value in values for item in value))
    return {name: item for value in values for name, item in value.items()}


def name_from(*values):
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    return "".join(letters[byte % 32] for byte in digest(values).digest()[:13])


class Made:
    """A resource that the template makes, or that it takes as existing."""

    def __init__(self, template, declaration, local):
        self.template, self.declaration, self.local = template, declaration, local
        self.type = declaration.what.split("@")[0]

    def member(self, name):
        return self.template.value(members(self.declaration.value)[name], self.local)

    @property
    def above(self):
        if self.declaration.above:
            return self.template.symbol(self.declaration.above.name)
        return self.member("parent") if "parent" in members(self.declaration.value) else None

    @property
    def name(self):
        return (f"{self.above.name}/" if self.above else "") + self.member("name")

    @property
    def id(self):
        provider, *types = self.type.split("/")
        pairs = "".join(f"/{type_}/{name}" for type_, name in zip(types, self.name.split("/"), strict=True))
        scope = self.member("scope").id if "scope" in members(self.declaration.value) else GROUP["id"]
        return f"{scope}/providers/{provider}{pairs}"

    def get(self, name):
        if name in ("id", "type"):
            return getattr(self, name)
        if name == "name":
            return self.member("name")
        known = json.loads(json.dumps(OF_AZURE.get(self.type, {})).replace("{name}", self.name))
        written = members(self.declaration.value)
        return (self.member(name) if name in written else {}) | (known if name == "properties" else {})

    def deployed(self):
        apart = ("name", "parent", "scope", "dependsOn")
        written = members(self.declaration.value)
        after = [text(other) for other in parts(written["dependsOn"])] if "dependsOn" in written else []
        body = {name: self.member(name) for name in written if name not in apart}
        return {"type": self.type, "name": self.name, "id": self.id, "after": after, "body": body}


class Template:
    def __init__(self, path, parameters, who):
        self.path, self.parameters, self.who, self.values = path, parameters, who, {}
        self.declarations = declarations(parse(path))
        self.by_name = {named.name: named for named in self.declarations if named.kind != "output"}

    def deployed(self):
        resources, outputs = [], {}
        for declaration in self.declarations:
            if declaration.kind == "output":
                outputs[declaration.name] = self.value(declaration.value)
            elif declaration.kind == "module" and self.condition(declaration):
                resources += self.symbol(declaration.name).deployed()["resources"]
            elif declaration.kind == "resource" and self.condition(declaration) and not declaration.existing:
                made = self.symbol(declaration.name)
                resources += [one.deployed() for one in (made if isinstance(made, list) else [made])]
        return {"resources": resources, "outputs": outputs}

    def condition(self, declaration):
        above = declaration.above is None or self.condition(declaration.above)
        return above and (declaration.condition is None or self.value(declaration.condition))

    def symbol(self, name):
        if name not in self.values:
            self.values[name] = self.declared(self.by_name[name])
        return self.values[name]

    def declared(self, declaration):
        if declaration.kind == "parameter" and declaration.name in self.parameters:
            return self.parameters[declaration.name]
        if declaration.kind == "resource" and declaration.loop:
            return [Made(self, declaration, local) for local in self.rounds(declaration.loop, {})]
        if declaration.kind == "resource":
            return Made(self, declaration, {})
        if declaration.kind == "module":
            parameters = self.value(members(declaration.value)["params"])
            return Template(self.path.parent / declaration.what, parameters, self.who)
        if declaration.value is None:
            raise LookupError(f"{self.path}: the parameter {declaration.name} has no value")
        return self.value(declaration.value)

    def rounds(self, loop, local):
        """The names of a loop with their values, for each round."""
        names, items, _ = parts(loop)
        names = [text(name) for name in parts(names) or [names]]
        return [local | dict(zip(names, (item, i))) for i, item in enumerate(self.value(items, local))]

    def value(self, node, local=None, then=lambda value: value):
        """The value of an expression. The grammar reads !a.b as (!a).b, and c ? a : b.c as (c ? a : b).c: then is what
        follows behind, and belongs to the last operand."""
        local = local or {}
        children = parts(node)
        if node.type in ("unary_expression", "binary_expression", "ternary_expression"):
            return self.operator(node, children, local, then)
        if node.type == "member_expression":
            name = text(children[1])
            return self.value(children[0], local, lambda value: then(self.get(node, value, name)))
        if node.type == "subscript_expression":
            index = self.value(children[1], local)
            return self.value(children[0], local, lambda value: then(value[index]))
        if node.type == "resource_expression":
            return then(self.symbol(text(children[-1])))
        if node.type == "parenthesized_expression":
            return then(self.value(children[0], local))
        if node.type == "call_expression":
            return then(self.call(node, text(children[0]), [self.value(a, local) for a in parts(children[1])]))
        if node.type == "identifier":
            name = text(node)
            return then(local[name] if name in local else self.symbol(name))
        if node.type == "string":
            return self.string(node, local)
        if node.type == "array":
            return [self.value(item, local) for item in children]
        if node.type == "object":
            return {self.key(name, local): self.value(item, local) for name, item in self.pairs(node)}
        if node.type == "for_statement":
            return [self.value(children[-1], names) for names in self.rounds(node, local)]
        if (found := literal(node)) is not NOT_LITERAL:
            return found
        raise self.unknown(node)

    def string(self, node, local):
        pieces = []
        for piece in node.named_children:
            if piece.type == "interpolation":
                pieces.append(str(self.value(parts(piece)[0], local)))
            else:
                pieces.append(ESCAPES.get(text(piece), text(piece)))
        return "".join(pieces)

    def pairs(self, node):
        return [parts(member) for member in parts(node) if len(parts(member)) == 2]

    def key(self, node, local):
        return self.string(node, local) if node.type == "string" else text(node)

    def operator(self, node, operands, local, then):
        if node.type == "ternary_expression":
            if self.value(operands[0], local):
                return self.value(operands[1], local)
            return self.value(operands[2], local, then)
        if node.type == "unary_expression":
            return not self.value(operands[0], local, then)
        left = self.value(operands[0], local)
        operator = text(node.child_by_field_name("operator") or node.children[1])
        if operator == "&&":
            return left and self.value(operands[1], local, then)
        if operator == "||":
            return left or self.value(operands[1], local, then)
        right = self.value(operands[1], local, then)
        if operator == "==":
            return left == right
        if operator == ">":
            return left > right
        raise self.unknown(node)

    def get(self, node, value, name):
        if isinstance(value, Made):
            return value.get(name)
        if name not in value:
            raise LookupError(f"{self.path}:{line(node)}: {text(node)} is not known")
        return value[name]

    def call(self, node, name, arguments):
        functions = {
            "concat": lambda *lists: [item for list_ in lists for item in list_],
            "deployer": lambda: self.who,
            "empty": empty,
            "environment": lambda: ENVIRONMENT,
            "guid": lambda *values: str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(values))),
            "json": json.loads,
            "length": len,
            "loadTextContent": lambda file: (self.path.parent / file).read_text(),
            "replace": str.replace,
            "resourceGroup": lambda: GROUP,
            "string": lambda value: value if isinstance(value, str) else json.dumps(value),
            "subscriptionResourceId": lambda type_, name: f"{SUBSCRIPTION}/providers/{type_}/{name}",
            "take": lambda value, count: value[:count],
            "tenant": lambda: {"tenantId": TENANT},
            "toLower": str.lower,
            "union": union,
            "uniqueString": name_from,
        }
        if name not in functions:
            raise self.unknown(node)
        return functions[name](*arguments)

    def unknown(self, node):
        return NotImplementedError(f"{self.path}:{line(node)}: cannot evaluate {text(node)[:60]}")


def deployed(path, who):
    """What the parameter file deploys when deployer() is who: resources, those of modules too, and outputs."""
    file = Template(path, {}, who)
    parameters = {name: file.symbol(name) for name in file.by_name}
    return Template(path.parent / using(parse(path)), parameters, who).deployed()
