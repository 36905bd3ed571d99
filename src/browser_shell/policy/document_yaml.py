"""YAML as policy files have it: plain values only, and no key twice."""

from __future__ import annotations

from collections.abc import Hashable

import yaml


def parse_yaml(text: str) -> object:
    """Raises: ValueError, RecursionError."""
    try:
        document: object = yaml.load(text, Loader=_LoaderWithoutTwins)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as wrong:
        raise ValueError(str(wrong)) from wrong
    return document


class _LoaderWithoutTwins(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        keys = [key.value for key, _ in node.value]
        twins = sorted({str(key) for key in keys if keys.count(key) > 1})
        if twins:
            raise ValueError(f"the key {twins[0]!r} appears twice")
        return super().construct_mapping(node, deep=deep)
