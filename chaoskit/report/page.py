"""Pages for people: templates with one look, each a file that needs no other.

Everything that an agent may have said is escaped, written so that it can be seen, and
cut where it is long; nothing is fetched, and nothing runs.
"""

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from chaoskit.model.errors import printable

TEXT_MAX = 4000
"""So many characters of one text are shown."""
# Read with the code that fills them: a page is made when a campaign ends, and by then
# another version may have been installed over this one.
_SOURCES = {
    entry.name: entry.read_text(encoding="utf-8")
    for entry in files("chaoskit.report").joinpath("templates").iterdir()
    if entry.name.endswith(".j2")
}


def page(template: str, **values: Any) -> str:
    """A template of `chaoskit/report/templates`, filled; it extends `page.html.j2`."""
    return _templates().get_template(template).render(**values) + "\n"


def whole(text: str) -> Markup:
    """A text that is not cut, however long: a command, of which no half is any use."""
    return Markup.escape(_plain(text))


def _seen(value: Any) -> Any:
    """What stands for a value on a page: no control characters, and no endless text."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    text = value[:TEXT_MAX]
    more = len(value) - len(text)
    return f"{_plain(text)} … ({more} more characters)" if more else _plain(text)


def _plain(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


@cache
def _templates() -> Environment:
    return Environment(
        loader=DictLoader(_SOURCES),
        autoescape=True,
        finalize=_seen,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
