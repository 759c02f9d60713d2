"""Pages for people: templates with one look, each a file that needs no other.

Everything that an agent may have said is escaped; nothing is fetched or run.
"""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from chaoskit.report.text import writable


def page(template: str, **values: Any) -> str:
    """A template of `chaoskit/report/templates`, filled."""
    return writable(_templates().get_template(template).render(**values)) + "\n"


@cache
def _templates() -> Environment:
    loader = PackageLoader("chaoskit.report")
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
