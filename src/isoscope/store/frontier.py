"""The frontier of an unfinished run on disk: the nodes of its merge tree, each a file.

A file is written aside and renamed, and its name holds the checksum of its content: what is
there under its name is whole. Files that a larger node covers are deleted after it is
written, so that a kill at any moment loses at most the work since the last writing.
"""

import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from isoscope.errors import StoreError
from isoscope.store.state import read_state, write_state
from isoscope.store.tree import Node, Tree
from isoscope.store.unit import Units

if TYPE_CHECKING:
    from isoscope.survey import Survey

_NAME = re.compile(r"node-(\d+)-(\d+)-([0-9a-f]{32})\.safetensors")
_LIST = "units.id"


class Frontier:
    """A folder of finished nodes."""

    def __init__(self, folder: Path, units: Units) -> None:
        self.folder = folder
        self.units = units

    def open(self) -> Tree:
        """Return the tree as it was last written; an empty one where nothing was."""
        from isoscope.survey import Survey

        self.folder.mkdir(parents=True, exist_ok=True)
        self._same_units()
        tree = Tree(len(self.units), settled)
        for node, path, digest in sorted(self._files(), key=lambda found: -found[0].level):
            covered = any(other.covers(node.first) for other in tree.nodes)
            if not covered and _digest(path) == digest:
                tree.nodes[node] = Survey.from_state(*read_state(path))
        return tree

    def write(self, tree: Tree) -> None:
        """Write the nodes that are not there yet, then delete what they cover."""
        there = {node: path for node, path, _ in self._files()}
        for node, survey in tree.nodes.items():
            if node not in there:
                self._write_node(node, survey)  # type: ignore[arg-type]
        for node, path in there.items():
            if node not in tree.nodes:
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete what was written; the run is whole and has no more use for it."""
        for _, path, _ in self._files():
            path.unlink(missing_ok=True)
        for leftover in self.folder.glob("*.part"):
            leftover.unlink(missing_ok=True)
        (self.folder / _LIST).unlink(missing_ok=True)
        self.folder.rmdir()

    def _write_node(self, node: Node, survey: "Survey") -> None:
        aside = self.folder / f"{os.getpid()}-{node.level}-{node.index}.part"
        write_state(aside, *survey.to_state())
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        name = f"node-{node.level}-{node.index}-{_digest(aside)}.safetensors"
        aside.rename(self.folder / name)

    def _files(self) -> Iterator[tuple[Node, Path, str]]:
        for path in self.folder.iterdir():
            found = _NAME.fullmatch(path.name)
            if found:
                yield Node(int(found[1]), int(found[2])), path, found[3]

    def _same_units(self) -> None:
        """Refuse the frontier of another run: other documents, model or settings."""
        mark = self.folder / _LIST
        if not mark.exists():
            aside = mark.with_suffix(".part")
            aside.write_text(self.units.id)
            aside.rename(mark)
        elif mark.read_text() != self.units.id:
            raise StoreError(
                f"cannot resume {self.folder.parent.name!r} with other units of work",
                hint="the model, the corpus or a setting has changed: choose another folder",
                slug="resume-other",
            )


def settled(survey: "Survey") -> "Survey":
    """Return a survey as it is after being saved and loaded."""
    return type(survey).from_state(*survey.to_state())


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
