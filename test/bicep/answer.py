"""Answers the Go tests: a line of JSON for each line of JSON.

{"root": FOLDER, "evaluate": [FILE...], "who": {...}} is answered by
{"findings": [...], "unused": {TEMPLATE: [NAME...]}, "deployed": {FILE: {...}}}. who is what deployer() tells. What
cannot be evaluated is a finding.
"""

import json
import os
import pathlib
import sys

from evaluate import Evaluation

for request in map(json.loads, sys.stdin):
    root, evaluation, deployed = pathlib.Path(request["root"]), Evaluation(request["who"]), {}
    for file in request["evaluate"]:
        try:
            deployed[file] = evaluation.deployed(root / file)
        except Exception as error:  # of a mistaken template, anything
            evaluation.findings.append(f"{file}: {type(error).__name__}: {error}")
    unused = {
        os.path.relpath(path, root): sorted(names)
        for path, names in evaluation.unused.items()
        if path.suffix == ".bicep"
    }
    findings = list(dict.fromkeys(evaluation.findings))
    print(json.dumps({"findings": findings, "unused": unused, "deployed": deployed}), flush=True)
