"""Answers the Go tests: a line of JSON for each line of JSON.

{"root": FOLDER, "check": [FILE...], "evaluate": [FILE...], "who": {...}} is answered by
{"findings": [...], "deployed": {FILE: {...}}}. What cannot be evaluated is a finding.
"""

import json
import pathlib
import sys

from check import check
from evaluate import deployed

for request in map(json.loads, sys.stdin):
    root = pathlib.Path(request["root"])
    answer = {"findings": check([root / file for file in request["check"] or []]), "deployed": {}}
    for file in request["evaluate"] or []:
        try:
            answer["deployed"][file] = deployed(root / file, request["who"])
        except Exception as error:  # of a mistaken template, anything
            answer["findings"].append(f"{file}: {type(error).__name__}: {error}")
    print(json.dumps(answer), flush=True)
