"""The text of a policy file, JSON or YAML, without a key twice."""

from __future__ import annotations

from collections.abc import Hashable

import yaml

from browser_shell.core.errors import ConfigurationInvalid
from browser_shell.policy.strict_json import parse_json


def read_document(text: str, *, source: str) -> object:
    """Parse by content: what begins with `{` is JSON unless the name says YAML.

    Raises: ConfigurationInvalid.
    """
    is_json = text.lstrip().startswith("{") and not source.endswith((".yaml", ".yml"))
    try:
        return parse_json(text) if is_json else _parse_yaml(text)
    except (ValueError, RecursionError, yaml.YAMLError) as wrong:
        kind = "JSON" if is_json else "YAML"
        raise ConfigurationInvalid(f"{source}: is not valid {kind}: {wrong}", rule_id="policy.invalid") from wrong


def _parse_yaml(text: str) -> object:
    document: object = yaml.load(text, Loader=_LoaderWithoutTwins)  # noqa: S506 - a subclass of SafeLoader
    return document


class _LoaderWithoutTwins(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        keys = [key.value for key, _ in node.value]
        twins = sorted({str(key) for key in keys if keys.count(key) > 1})
        if twins:
            raise ValueError(f"the key {twins[0]!r} appears twice")
        return super().construct_mapping(node, deep=deep)
