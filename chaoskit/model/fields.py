"""The kinds of field that scenario and manifest are made of: strict and explained."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

TEXT_LENGTH_MAX = 10_000  # well below what an operating system takes as one argument
SECONDS_MAX = 86_400


class Frozen(BaseModel):
    """Data that never changes, takes no unknown key, and is described by docstrings."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
    )


def flaw(expected: str, hint: str | None = None) -> PydanticCustomError:
    """The error a validator raises: what was expected, and the likely fix."""
    context = {"expected": expected, "hint": hint}
    return PydanticCustomError("flaw", "expected {expected}", context)


@dataclass(frozen=True)
class Shaped:
    """Text that matches a pattern as a whole, with the pattern said in words."""

    pattern: str
    expected: str
    fix: Callable[[str], str | None] = lambda _: None

    def check(self, text: str) -> str:
        """The text itself. Raises the flaw that says what it should look like."""
        if re.fullmatch(self.pattern, text, re.ASCII):
            return text
        raise flaw(self.expected, self.fix(text))

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check after everything that was said about the field before."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The pattern, anchored: JSON Schema would also match a part of the text."""
        return handler(schema) | {"pattern": f"^(?:{self.pattern})$"}


def slug(name: str) -> str | None:
    """A hint at a name made of letters, digits, - and _ that is close to this one."""
    words = re.findall(r"[A-Za-z0-9_-]+", name)
    usable = "-".join(words).lstrip("-")[:60]
    return f"try '{usable}'" if usable else None


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise flaw("text without NUL characters")
    return text


_LIMITED = Field(strict=True, max_length=TEXT_LENGTH_MAX)
AnyText = Annotated[str, _LIMITED, AfterValidator(_without_nul)]
Text = Annotated[str, Field(min_length=1), _LIMITED, AfterValidator(_without_nul)]
Whole = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Seconds = Annotated[
    float, Field(strict=True, gt=0, le=SECONDS_MAX, allow_inf_nan=False)
]
