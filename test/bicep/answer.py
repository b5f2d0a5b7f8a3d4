"""Answers the Go tests: a line of JSON for each line of JSON.

{"check": [FILE...], "evaluate": [FILE...], "who": {...}} is answered by {"findings": [...], "deployed": {FILE: {...}}};
what cannot be evaluated is a finding.
"""

import json
import pathlib
import sys

from check import check
from evaluate import deployed

for request in map(json.loads, sys.stdin):
    answer = {"findings": check(request["check"]), "deployed": {}}
    for file in request["evaluate"]:
        try:
            answer["deployed"][file] = deployed(pathlib.Path(file), request["who"])
        except Exception as error:  # of a mutant, anything
            answer["findings"].append(f"{file}: {type(error).__name__}: {error}")
    print(json.dumps(answer), flush=True)
