"""The attack corpus in tests/data/corpus, with its macros expanded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "data" / "corpus"


def load(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [expand(json.loads(line)) for line in lines if line.strip()]


def expand(value: Any) -> Any:
    if isinstance(value, list):
        return [expand(item) for item in value]
    if not isinstance(value, dict):
        return value
    for name, macro in value.items():
        if name in _MACROS:
            return _MACROS[name](macro)
    if "__template__" in value:
        return value["__template__"] % expand(value["fill"])
    return {key: expand(item) for key, item in value.items()}


def _chunked(macro: dict[str, Any]) -> bytes:
    data = (macro["chunk"] * macro["chunk_size"]).encode()
    chunk = b"%x\r\n%s\r\n" % (len(data), data)
    return bytes(macro["head"].encode("latin-1") + chunk * macro["chunks"] + b"0\r\n\r\n")


_MACROS: dict[str, Callable[[Any], Any]] = {
    "__repeat_str__": lambda macro: macro["s"] * macro["n"],
    "__repeat_item__": lambda macro: [*macro.get("prefix", []), *[macro["item"]] * macro["n"]],
    "__encode__": lambda macro: macro["text"].encode(macro["encoding"]),
    "__bytes_hex__": bytes.fromhex,
    "__hex__": bytes.fromhex,
    "__many_headers__": lambda count: [[f"X-H{number}", "v"] for number in range(count)],
    "__gzip_bomb__": lambda macro: gzip.compress(bytes(macro["inflated_mib"] * 1024 * 1024)),
    "__chunked__": _chunked,
}
