"""What all shapes of the roster are made of: the strict base model, and the small types that many fields share."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError


def wrong(message: str) -> PydanticCustomError:
    """What a validator raises; ``message`` is a clause that follows the field's name ("must be a list")."""
    return PydanticCustomError("callboard", "{message}", {"message": message})


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        raise wrong('must be in quotes, because a number can be spelled in more than one way ("1.10")')
    if value is None:
        raise wrong('has no value; write "" for an empty one')
    if isinstance(value, str) and "\0" in value:
        raise wrong("must not contain a NUL character")
    return value


def _filled(value: str) -> str:
    if not value.strip():
        raise wrong("must not be empty")
    return value


Text = Annotated[str, BeforeValidator(_as_text)]
Filled = Annotated[Text, AfterValidator(_filled)]
Seconds = Annotated[float, Field(gt=0, le=7 * 24 * 3600)]


class Model(BaseModel):
    """Base of all shapes: no unknown field, no silent conversion; a field without a value counts as not given."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}
