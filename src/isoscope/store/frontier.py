"""The frontier of an unfinished run on disk: the nodes of its merge tree, each a file.

A file is written aside and renamed, and its name holds the checksum of its content: what is
there under its name is whole. Files that a larger node covers are deleted after it is
written, so that a kill at any moment loses at most the unit under way. States stay on disk,
where one place after the other is merged: a model's may be larger than memory.
"""

import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from isoscope.errors import ResumeError, StoreError
from isoscope.store.stream import joined, written
from isoscope.store.swap import linked
from isoscope.store.tree import Node, Tree
from isoscope.store.unit import Units

if TYPE_CHECKING:
    from isoscope.survey import Survey

_NAME = re.compile(r"node-(\d+)-(\d+)-([0-9a-f]{32})\.safetensors")
MANIFEST = "units.json"


class Frontier:
    """A folder of finished nodes."""

    def __init__(self, folder: Path, units: Units) -> None:
        self.folder = folder
        self.units = units
        folder.mkdir(parents=True, exist_ok=True)
        same_units(folder, units)
        self.tree: Tree[Path] = Tree(len(units), self._join)
        for node, path, digest in sorted(self._files(), key=lambda found: -found[0].level):
            covered = any(other.covers(node.first) for other in self.tree.nodes)
            if covered or _digest(path) != digest:
                path.unlink()
            else:
                self.tree.nodes[node] = path
        for node in list(self.tree.nodes):  # a kill may have come between two merges
            if node in self.tree.nodes:
                self.tree.put(node, self.tree.nodes[node])

    def missing(self) -> list[int]:
        """Return the units that are not done yet, in order."""
        return list(self.tree.missing())

    def add(self, unit: int, survey: "Survey") -> None:
        """Keep the result of a unit."""
        node = Node(0, unit)
        aside = self._aside(node)
        written(aside, survey)
        self.tree.put(node, self._named(aside, node))

    def total(self, out: Path) -> bool:
        """Write all nodes added up; False where there is none."""
        if not self.tree.roots:
            return False
        first, *rest = self.tree.roots
        whole = first
        for number, path in enumerate(rest):
            fresh = self.folder / f"{os.getpid()}-total-{number}.part"
            fresh.unlink(missing_ok=True)
            joined(whole, path, fresh)
            if whole is not first:
                whole.unlink()
            whole = fresh
        if whole is first:
            linked(first, out)
        else:
            whole.replace(out)
        return True

    def clear(self) -> None:
        """Delete what was written; the run is whole and has no more use for it."""
        for _, path, _ in self._files():
            path.unlink(missing_ok=True)
        for leftover in (*self.folder.glob("*.part"), *self.folder.glob("*.data")):
            leftover.unlink(missing_ok=True)
        (self.folder / MANIFEST).unlink(missing_ok=True)
        self.folder.rmdir()

    def _join(self, node: Node, left: Path, right: Path) -> Path:
        aside = self._aside(node)
        joined(left, right, aside)
        whole = self._named(aside, node)
        left.unlink()
        right.unlink()
        return whole

    def _aside(self, node: Node) -> Path:
        path = self.folder / f"{os.getpid()}-{node.level}-{node.index}.part"
        for leftover in (path, path.with_name(f"{path.name}.data")):
            leftover.unlink(missing_ok=True)
        return path

    def _named(self, aside: Path, node: Node) -> Path:
        """Give a finished file its name, once its bytes are on the disk."""
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        name = f"node-{node.level}-{node.index}-{_digest(aside)}.safetensors"
        return aside.rename(self.folder / name)

    def _files(self) -> Iterator[tuple[Node, Path, str]]:
        for path in sorted(self.folder.iterdir()):
            found = _NAME.fullmatch(path.name)
            if found:
                yield Node(int(found[1]), int(found[2])), path, found[3]


def same_units(folder: Path, units: Units) -> None:
    """Refuse what was begun by another run: other documents, model or settings."""
    manifest = folder / MANIFEST
    if not manifest.exists():
        aside = manifest.with_suffix(".part")
        aside.write_bytes(units.encoded())
        aside.rename(manifest)
    elif _listed(manifest) != units.id:
        raise ResumeError(
            f"cannot resume {folder.parent.name!r} with other units of work",
            hint="the model, the corpus or a setting has changed: choose another folder, "
            "or begin again with --overwrite",
            slug="resume-other",
        )


def _listed(manifest: Path) -> str:
    """Return the id of the units that a folder was begun with."""
    try:
        return str(msgspec.json.decode(manifest.read_bytes())["id"])
    except (msgspec.MsgspecError, KeyError, TypeError, OSError) as error:
        raise StoreError(
            f"cannot read {str(manifest)!r}: {error}",
            hint="what was begun there is damaged: choose another folder",
            slug="store-damaged",
        ) from error


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
