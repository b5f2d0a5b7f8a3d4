"""Says what a parameter file would deploy, without Azure, and what of it does not fit the vendor's types.

Ids and names that Azure makes up are stand-ins. What is not known here is an error, so that nothing passes for less
than it is: functions of time and of chance too.
"""

import hashlib
import json
import os
import pathlib
import uuid

from check import TYPES, misfits, misfits_of_parameter
from syntax import ESCAPES, NOT_LITERAL, broken, declarations, line, literal, members, parse, parts, text, using

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


def empty(value):
    return value is None or len(value) == 0


def union(*values):
    if isinstance(values[0], list):
        return list(dict.fromkeys(item for value in values for item in value))
    return {name: item for value in values for name, item in value.items()}


def unique(*values):
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    return "".join(letters[byte % 32] for byte in hashlib.sha256(json.dumps(values).encode()).digest()[:13])


class Made:
    """A resource that the template makes, or that it takes as existing."""

    def __init__(self, template, declaration, local):
        self.template, self.declaration, self.local = template, declaration, local
        self.type = declaration.what.split("@")[0]
        self.written = members(declaration.value)
        self.vendors = TYPES.get(declaration.what.lower(), "any")
        if self.vendors == "any":
            self.report(f"the type {declaration.what} is not in types.json (reduce.py adds it)")

    def member(self, name):
        if name not in self.written:
            raise LookupError(f"{self.template.path}: {self.declaration.name}.{name} is required")
        return self.template.value(self.written[name], self.local)

    @property
    def above(self):
        if self.declaration.above:
            return self.template.symbol(self.declaration.above.name)
        return self.member("parent") if "parent" in self.written else None

    @property
    def name(self):
        name = (f"{self.above.name}/" if self.above else "") + self.member("name")
        if not all(name.split("/")):
            raise ValueError(f"{self.template.path}: {self.declaration.name}: a part of the name {name!r} is empty")
        return name

    @property
    def id(self):
        provider, *types = self.type.split("/")
        pairs = "".join(f"/{type_}/{name}" for type_, name in zip(types, self.name.split("/"), strict=True))
        scope = self.member("scope").id if "scope" in self.written else GROUP["id"]
        return f"{scope}/providers/{provider}{pairs}"

    def get(self, name):
        if name == "id":
            return self.id
        if name == "properties":
            return json.loads(json.dumps(OF_AZURE.get(self.type, {})).replace("{name}", self.name))
        return self.member(name)

    def deployed(self):
        body = {name: self.member(name) for name in self.written if name not in ("parent", "scope", "dependsOn")}
        for misfit in misfits(self.declaration.name, body, self.vendors):
            self.report(misfit)
        del body["name"]
        after = []
        if "dependsOn" in self.written:
            self.member("dependsOn")  # names what is not declared
            after = [text(other) for other in parts(self.written["dependsOn"])]
        return {"type": self.type, "name": self.name, "id": self.id, "after": after, "body": body}

    def report(self, message):
        self.template.report(self.declaration.node, message)


class Evaluation:
    """What a request asks for: who deploys, the findings, and the names that each template asked for."""

    def __init__(self, who):
        self.who, self.findings, self.unused = who, [], {}

    def deployed(self, path):
        """What the parameter file deploys: resources, those of modules too, and outputs."""
        file = Template(self, path, {})
        parameters = {name: file.symbol(name) for name in file.by_name}
        return Template(self, path.parent / using(file.root), parameters).deployed()


class Template:
    def __init__(self, evaluation, path, parameters):
        self.path = pathlib.Path(os.path.normpath(path))
        self.evaluation, self.parameters, self.values = evaluation, parameters, {}
        self.root = parse(self.path)
        if error := broken(self.root):
            raise SyntaxError(f"{path}:{line(error)}: does not parse")
        self.declarations = declarations(self.root)
        self.by_name = {named.name: named for named in self.declarations if named.kind != "output"}
        names = {named.name for named in self.declarations if named.kind in ("parameter", "variable")}
        self.unused = evaluation.unused.setdefault(self.path, names)

    def report(self, node, message):
        self.evaluation.findings.append(f"{self.path}:{line(node)}: {message}")

    def deployed(self):
        taken = {named.name: named for named in self.declarations if named.kind == "parameter"}
        for name in set(self.parameters) - set(taken):
            self.report(self.root, f"there is no parameter {name}")
        for name, declaration in taken.items():
            for misfit in misfits_of_parameter(declaration, self.symbol(name)):
                self.report(declaration.node, misfit)
        resources, outputs = [], {}
        for declaration in self.declarations:
            if declaration.kind == "output":
                outputs[declaration.name] = self.value(declaration.value)
            elif declaration.kind == "module" and self.condition(declaration):
                resources += self.symbol(declaration.name).deployed()["resources"]
            elif declaration.kind == "resource" and not declaration.existing:
                made = self.symbol(declaration.name)
                made = made if isinstance(made, list) else [made]
                _ = [one.id for one in made]  # Azure looks at names also where the condition is false
                if self.condition(declaration):
                    resources += [one.deployed() for one in made]
        return {"resources": resources, "outputs": outputs}

    def condition(self, declaration):
        above = declaration.above is None or self.condition(declaration.above)
        return above and (declaration.condition is None or self.value(declaration.condition))

    def symbol(self, name):
        if name not in self.by_name:
            raise LookupError(f"{self.path}: {name} is not declared")
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
            given = {name: self.value(value) for name, value in members(declaration.value).items()}
            if not {"name", "params"} <= set(given):
                raise LookupError(f"{self.path}: {declaration.name} has no name, or no params")
            return Template(self.evaluation, self.path.parent / declaration.what, given["params"])
        if declaration.value is None:
            raise LookupError(f"{self.path}: the parameter {declaration.name} has no value")
        return self.value(declaration.value)

    def rounds(self, loop, local):
        """The names of a loop with their values, for each round."""
        names, items, _ = parts(loop)
        names = [text(name) for name in parts(names) or [names]]
        return [local | dict(zip(names, (item, i))) for i, item in enumerate(self.value(items, local))]

    def value(self, node, local=None):
        local, children = local or {}, parts(node)
        if node.type == "member_expression":
            return self.get(node, self.value(children[0], local), text(children[1]))
        if node.type == "subscript_expression":
            return self.value(children[0], local)[self.value(children[1], local)]
        if node.type == "resource_expression":
            return self.symbol(text(children[-1]))
        if node.type == "parenthesized_expression":
            return self.value(children[0], local)
        if node.type == "ternary_expression":
            return self.value(children[1 if self.value(children[0], local) else 2], local)
        if node.type == "unary_expression":
            return not self.value(children[0], local)
        if node.type == "binary_expression":
            return self.operation(node, [self.value(operand, local) for operand in children])
        if node.type == "call_expression":
            return self.call(node, text(children[0]), [self.value(argument, local) for argument in parts(children[1])])
        if node.type == "identifier":
            self.unused.discard(text(node))
            return local[text(node)] if text(node) in local else self.symbol(text(node))
        if node.type == "string":
            return self.string(node, local)
        if node.type == "array":
            return [self.value(item, local) for item in children]
        if node.type == "object":
            pairs = [parts(member) for member in children if len(parts(member)) == 2]
            names = [self.string(name, local) if name.type == "string" else text(name) for name, _ in pairs]
            return {name: self.value(item, local) for name, (_, item) in zip(names, pairs)}
        if node.type == "for_statement":
            return [self.value(children[-1], names) for names in self.rounds(node, local)]
        if (found := literal(node)) is not NOT_LITERAL:
            return found
        raise self.unknown(node)

    def string(self, node, local):
        def read(piece):
            if piece.type == "interpolation":
                return str(self.value(parts(piece)[0], local))
            return ESCAPES.get(text(piece), text(piece))

        return "".join(map(read, node.named_children))

    def operation(self, node, operands):
        left, right = operands
        operator = text(node.child_by_field_name("operator"))
        if operator == "&&":
            return left and right
        if operator == "==":
            return left == right
        if operator == ">":
            return left > right
        raise self.unknown(node)

    def get(self, node, value, name):
        if parts(node)[0].type in ("unary_expression", "binary_expression", "ternary_expression"):
            raise self.unknown(node)  # the grammar reads !a.b as (!a).b: take parentheses
        if isinstance(value, Made):
            return value.get(name)
        if name not in value:
            raise LookupError(f"{self.path}:{line(node)}: {text(node)} is not known")
        return value[name]

    def call(self, node, name, arguments):
        functions = {
            "concat": lambda *lists: [item for list_ in lists for item in list_],
            "deployer": lambda: self.evaluation.who,
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
            "uniqueString": unique,
        }
        if name not in functions:
            raise self.unknown(node)
        return functions[name](*arguments)

    def unknown(self, node):
        return NotImplementedError(f"{self.path}:{line(node)}: cannot evaluate {text(node)[:60]}")
