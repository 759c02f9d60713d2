"""What a YAML parser complains about, in the words of someone who writes YAML."""

from ruamel.yaml.error import MarkedYAMLError, StringMark

from chaoskit.loading.nodes import Place
from chaoskit.model.errors import Problem, quoted

PLAIN_WORDS = (
    ("mapping values are not", "one `key: value` a line; text with ': ' needs quotes"),
    ("'\\t'", "spaces for indentation, not tabs"),
    ("got '{'", 'quotes around text with braces, as in "{run}"'),
    ("cannot start any token", "quotes around text that starts with this character"),
    ("end of stream", "a closing quote for the text that starts here"),
    ("<stream end>", "a closing bracket or brace for the one that opens here"),
    ("expected ',' or", "a comma, or the closing bracket or brace"),
    ("<document start>", "all keys of the top level at the same indentation"),
    (
        "<block end>",
        "the next key here, at the same indentation, or quotes around text",
    ),
    ("could not find expected ':'", "a `key: value`"),
)
_TOO_EARLY = ("end of stream", "<stream end>")


def syntax_problem(file: str, text: str, error: MarkedYAMLError) -> Problem:
    """The problem, where to look: if the file ends too early, that is the opening."""
    complaint = str(error.problem or error.context or "it cannot be read")
    mark, opening = error.problem_mark or error.context_mark, error.context_mark
    if opening and any(words in complaint for words in _TOO_EARLY):
        mark = opening
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1, 1)
    expected, hint = _in_words(complaint), _opened(opening, place)
    return place.problem("$", _written(text, place), expected, hint)


def stray_problem(text: str, place: Place, error: Exception) -> Problem:
    """The same for an error that the parser did not mean to raise."""
    told = f"the parser says: {error}"
    return place.problem("$", _written(text, place), "valid YAML from here on", told)


def _written(text: str, place: Place) -> str:
    lines = text.splitlines()[place.line - 1 : place.line]
    return quoted(lines[0].strip()) if lines else "nothing"


def _in_words(complaint: str) -> str:
    known = (words for sign, words in PLAIN_WORDS if sign in complaint)
    return next(known, f"valid YAML ({complaint})")


def _opened(opening: StringMark | None, place: Place) -> str | None:
    if opening is None or opening.line + 1 == place.line:
        return None
    return f"what is being read here begins in line {opening.line + 1}"
