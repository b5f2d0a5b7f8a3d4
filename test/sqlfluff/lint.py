"""sqlfluff with one rule more.

T-SQL lets the first statement of a batch call a procedure without EXEC, and sqlfluff's grammar lets every statement do
so. Without this rule "UPDTE t" is a call of the procedure UPDTE, and a misspelt verb passes.
"""

import sys

from sqlfluff.cli.commands import cli
from sqlfluff.core.plugin import hookimpl
from sqlfluff.core.plugin.host import get_plugin_manager
from sqlfluff.core.rules import BaseRule, LintResult
from sqlfluff.core.rules.crawlers import SegmentSeekerCrawler


class Rule_SW01(BaseRule):
    """Procedures are called with EXEC."""

    name = "tsql.explicit_exec"
    groups = ("all",)
    crawl_behaviour = SegmentSeekerCrawler({"execute_script_statement"})

    def _eval(self, context):
        first = context.segment.raw_segments[0]
        if first.raw_upper in ("EXEC", "EXECUTE"):
            return None
        return LintResult(first, description=f"Expected a statement, found a call of {first.raw} without EXEC.")


class Plugin:
    @hookimpl
    def get_rules(self):
        return [Rule_SW01]


if __name__ == "__main__":
    get_plugin_manager().register(Plugin())
    sys.exit(cli())
