"""Reading a policy file: JSON or YAML text to a `PolicyDocument`, with error messages that name the field."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.core.json_values import parse_json
from browser_shell.policy.document import PolicyDocument
from browser_shell.policy.messages import MAX_QUOTED

MAX_REPORTED_ERRORS = 5


def load_policy(text: str, *, source: str) -> PolicyDocument:
    """Read a policy from JSON or YAML text. Text that begins with `{` is JSON, unless `source` is a YAML file.

    Raises: ConfigurationInvalid naming the source, the field and the rule.
    """
    is_json = text.lstrip().startswith("{") and not source.endswith((".yaml", ".yml"))
    try:
        data = parse_json(text) if is_json else _parse_yaml(text)
    except (ValueError, RecursionError) as error:
        file_format = "JSON" if is_json else "YAML"
        raise _invalid(source, f"is not valid {file_format}: {error}") from error
    return policy_from(data, source=source)


def policy_from(data: object, *, source: str) -> PolicyDocument:
    """Read a policy from parsed data.

    Raises: ConfigurationInvalid naming the source, the field and the rule.
    """
    try:
        # Pydantic's strict JSON mode serves both formats: arrays become tuples, and "yes" is not a boolean.
        return PolicyDocument.model_validate_json(json.dumps(data, allow_nan=False))
    except ValidationError as error:
        raise _invalid(source, _explain(error)) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise _invalid(source, "holds a value that JSON cannot represent") from error


def _parse_yaml(text: str) -> object:
    # Lazy import: PyYAML takes 1 MB of memory, and most servers have no policy file in YAML.
    import yaml

    class UniqueKeyLoader(yaml.SafeLoader):
        """Refuses duplicate keys. PyYAML would keep the last one."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
            keys = [key.value for key, _ in node.value]
            duplicates = sorted({str(key) for key in keys if keys.count(key) > 1})
            if duplicates:
                raise ValueError(f"the key {duplicates[0]!r} appears twice")
            return super().construct_mapping(node, deep=deep)

    try:
        document: object = yaml.load(text, Loader=UniqueKeyLoader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return document


def _explain(error: ValidationError) -> str:
    """Name the first errors, each with its dotted path."""
    details = error.errors(include_url=False, include_input=False)
    sentences = [_sentence(detail) for detail in details[:MAX_REPORTED_ERRORS]]
    if len(details) > MAX_REPORTED_ERRORS:
        sentences.append(f"and {len(details) - MAX_REPORTED_ERRORS} more")
    return "; ".join(sentences)


def _sentence(detail: ErrorDetails) -> str:
    location = detail["loc"]
    path = ".".join(str(part)[:MAX_QUOTED] for part in location) or "the document"
    if detail["type"] == "extra_forbidden":
        return f"{path} is an unknown key; known keys here are {', '.join(_known_keys(location[:-1]))}"
    return f"{path}: {detail['msg'].removeprefix('Value error, ')}"


def _known_keys(path: tuple[int | str, ...]) -> list[str]:
    section: type[BaseModel] = PolicyDocument
    for key in path:
        field = section.model_fields.get(str(key))
        # Keys of tables, such as a tool in `limits.tools`, are not fields.
        if field is not None:
            section = _section_of(field.annotation) or section
    return list(section.model_fields)


def _section_of(annotation: object) -> type[BaseModel] | None:
    """Return the section type of a field; for a table, the section type of its entries."""
    candidates = [annotation, *get_args(annotation)]
    return next((kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _invalid(source: str, problem: str) -> ConfigurationInvalid:
    return ConfigurationInvalid(f"{source}: {problem}", rule_id="policy.invalid")
