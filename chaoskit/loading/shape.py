"""What a model says about the place that an error of pydantic's points to."""

from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from chaoskit.loading.nodes import Location


def fields_of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """The fields of a model by the keys that users write."""
    fields = model.model_fields
    return {field.alias or name: field for name, field in fields.items()}


def annotation_at(model: type[BaseModel], location: Location) -> Any:
    """The type that a model asks for at a location, without `Annotated` and None."""
    annotation: Any = model
    for part in location:
        annotation = _bare(_entry(annotation, part))
    return annotation


def _entry(annotation: Any, part: str | int) -> Any:
    if isinstance(part, int):
        return get_args(annotation)[0]
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    return fields_of(annotation)[part].annotation


def _bare(annotation: Any) -> Any:
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _bare(arguments[0])
    if NoneType in arguments:
        return _bare(next(each for each in arguments if each is not NoneType))
    return annotation
