"""What is wrong with a policy, in words that name the field and the rule."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from browser_shell.policy.wording import MAX_SHOWN, listed

MAX_SHOWN_ERRORS = 5


def explain(wrong: ValidationError, model: type[BaseModel]) -> str:
    """The mistakes, each with its dotted path."""
    errors = wrong.errors(include_url=False, include_input=False)
    more = [f"and {len(errors) - MAX_SHOWN_ERRORS} more"] if len(errors) > MAX_SHOWN_ERRORS else []
    return "; ".join([*(_sentence(error, model) for error in errors[:MAX_SHOWN_ERRORS]), *more])


def _sentence(error: ErrorDetails, model: type[BaseModel]) -> str:
    location = error["loc"]
    path = ".".join(str(part)[:MAX_SHOWN] for part in location) or "the document"
    if error["type"] == "extra_forbidden":
        return f"{path} is an unknown key; known keys here are {listed(_known_keys(model, location[:-1]))}"
    return f"{path}: {error['msg'].removeprefix('Value error, ')}"


def _known_keys(model: type[BaseModel], sections: tuple[int | str, ...]) -> list[str]:
    for section in sections:
        field = model.model_fields[str(section)].annotation
        # Only a section can hold an unknown key; the question is for the type checker.
        if isinstance(field, type) and issubclass(field, BaseModel):  # pragma: no branch
            model = field
    return list(model.model_fields)
