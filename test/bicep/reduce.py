"""Writes types.json: what check.py knows of the vendor's types of resources.

    reduce.py CHECKOUT COMMIT > types.json

CHECKOUT is a work tree of github.com/Azure/bicep-types-az at COMMIT. The types are those that types.json has already
and those that are named behind COMMIT.

types.json has the commit as "from", and by name and version of each type what its body may have:

    "string", "int", "bool", "any"
    "'a' | 'b'"                  one of these texts; "| string": the vendor takes others too
    [X]                          a list of X
    {"*": X}                     an object with any names
    {"a!": X, "b~": X, "c": X}   an object; a must be given, b can only be read
    {"?": "kind", "": {...}, "a": {...}}   the member kind says which members there are beside those of ""
"""

import json
import pathlib
import sys

REQUIRED, READ_ONLY = 1, 2
OF_EVERY_RESOURCE = ("id", "type", "apiVersion", "systemData")  # check.py knows them


def reduce(types, reference, above=()):
    """The form above of what a reference points to; above are the references on the way to it."""
    index = int(reference["$ref"].removeprefix("#/"))
    if index in above:
        return "any"
    kind, type_, above = types[index]["$type"], types[index], (*above, index)

    def members(properties):
        marks = {REQUIRED: "!", READ_ONLY: "~"}
        return {
            name + marks.get(member["flags"] & (REQUIRED | READ_ONLY), ""): reduce(types, member["type"], above)
            for name, member in sorted(properties.items())
            if name not in OF_EVERY_RESOURCE or len(above) > 1
        }

    if kind == "ObjectType":
        if type_.get("additionalProperties"):
            return members(type_["properties"]) | {"*": reduce(types, type_["additionalProperties"], above)}
        return members(type_["properties"])
    if kind == "DiscriminatedObjectType":
        cases = {value: reduce(types, case, above) for value, case in sorted(type_["elements"].items())}
        return {"?": type_["discriminator"], "": members(type_["baseProperties"])} | cases
    if kind == "ArrayType":
        return [reduce(types, type_["itemType"], above)]
    if kind == "UnionType":
        options = [reduce(types, element, above) for element in type_["elements"]]
        return " | ".join(options) if all(isinstance(option, str) for option in options) else "any"
    if kind == "StringLiteralType":
        return f"'{type_['value']}'"
    return {"StringType": "string", "IntegerType": "int", "BooleanType": "bool"}.get(kind, "any")


def main(checkout, commit, *more):
    wanted = set(more) | set(json.loads(pathlib.Path(__file__).with_name("types.json").read_text())["types"])
    found = {}
    for folder in {name.split("/")[0].lower() + "/" + name.split("@")[1] for name in wanted}:
        for file in pathlib.Path(checkout).glob(f"generated/*/{folder}/types.json"):
            types = json.loads(file.read_text())
            for type_ in types:
                if type_["$type"] == "ResourceType" and type_["name"] in wanted:
                    found[type_["name"]] = reduce(types, type_["body"])
    if missing := wanted - set(found):
        sys.exit(f"not in the checkout: {sorted(missing)}")
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found))
    print(f'{{"from": "Azure/bicep-types-az {commit}", "types": {{\n{lines}\n}}}}')


main(*sys.argv[1:])
