"""What is wrong with a policy, in words that name the field and the rule."""

from __future__ import annotations

from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from browser_shell.policy.messages import MAX_SHOWN, listed

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
        field = model.model_fields.get(str(section))
        # A name that is no field of ours is the key of a table: `tools.run_pytest`, `subjects.ann`.
        if field is not None:
            model = _section_of(field.annotation) or model
    return list(model.model_fields)


def _section_of(annotation: object) -> type[BaseModel] | None:
    """The section behind an annotation; for a table, the section that each of its entries is."""
    candidates = [annotation, *get_args(annotation)]
    return next((found for found in candidates if isinstance(found, type) and issubclass(found, BaseModel)), None)
