"""Run in the build: remove packages that the server does not need, and collect the licences of the others.

The lock file also lists build tools, and the environment contains pip. Neither belongs into the image.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_LICENCE_WORDS = ("licen", "copying", "notice", "authors")


def needed_names(requirements: list[str]) -> set[str]:
    """Everything that these requirements lead to, on this platform and Python."""
    found: set[str] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        new_extras = requirement.extras or {""}
        if name in found and new_extras == {""}:
            continue
        found.add(name)
        for text in distribution(name).requires or []:
            waiting += [(Requirement(text), each) for each in new_extras]
    return found


def remove(package: Distribution) -> None:
    """Deletes the files of one package, its folder of metadata and the folders that are empty then."""
    folders: set[Path] = set()
    for file in package.files or []:
        path = Path(str(package.locate_file(file)))
        path.unlink(missing_ok=True)
        folders.update(parent for parent in path.parents if "site-packages" in parent.parts[:-1])
    for folder in sorted(folders, key=lambda each: -len(each.parts)):
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def notice(package: Distribution) -> str:
    """Name, version, licence and the licence texts that the package brings."""
    about = package.metadata
    licence = about.get("License-Expression") or about.get("License") or "see its text"
    licence = licence.splitlines()[0][:100]
    texts = [
        Path(str(package.locate_file(file))).read_text(encoding="utf-8", errors="replace").strip()
        for file in package.files or []
        if ".dist-info" in str(file) and any(word in file.name.lower() for word in _LICENCE_WORDS)
    ]
    if not texts and licence == "see its text":
        raise SystemExit(f"{about['Name']} says nothing about its licence")
    head = f"{about['Name']} {package.version}\nLicence: {licence}\n"
    return "\n".join([head, *texts])


def main() -> None:
    project, notices = Path(sys.argv[1]), Path(sys.argv[2])
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    needed = needed_names(declared)
    kept = []
    for package in list(distributions()):
        if canonicalize_name(package.metadata["Name"]) in needed:
            kept.append(package)
    missing = needed - {canonicalize_name(package.metadata["Name"]) for package in kept}
    if missing:
        raise SystemExit(f"not installed: {sorted(missing)}")
    parts = [notice(package) for package in sorted(kept, key=lambda each: each.metadata["Name"].lower())]
    notices.parent.mkdir(parents=True, exist_ok=True)
    notices.write_text(("\n\n" + "=" * 100 + "\n\n").join(parts) + "\n", encoding="utf-8")
    for package in list(distributions()):
        if canonicalize_name(package.metadata["Name"]) not in needed:
            remove(package)


if __name__ == "__main__":
    main()
