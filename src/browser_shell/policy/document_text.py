"""The text of a policy file, JSON or YAML, without a key twice."""

from __future__ import annotations

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.policy.strict_json import parse_json


def read_document(text: str, *, source: str) -> object:
    """Parse by content: what begins with `{` is JSON unless the name says YAML.

    Raises: ConfigurationInvalid.
    """
    is_json = text.lstrip().startswith("{") and not source.endswith((".yaml", ".yml"))
    try:
        return parse_json(text) if is_json else _parse_yaml(text)
    except (ValueError, RecursionError) as wrong:
        kind = "JSON" if is_json else "YAML"
        raise ConfigurationInvalid(f"{source}: is not valid {kind}: {wrong}", rule_id="policy.invalid") from wrong


def _parse_yaml(text: str) -> object:
    # Here and not above: PyYAML takes 1 MB of every server, and not all have a policy file, or one in YAML.
    from browser_shell.policy.document_yaml import parse_yaml

    return parse_yaml(text)
