"""The keeper of summaries: the merge tree of a run, in memory and as files.

Nodes wait in memory and are written after about a minute, or when they take up half a
gigabyte. A file is written under a temporary name and renamed, and its name holds the
checksum of its content: what is there under its name is whole. Files that a larger node
covers are deleted after it is written, so that a kill at any moment loses at most what
was not yet written. Two nodes in memory are merged there; files are merged place by place,
since the state of a model may be larger than memory.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from isoscope.store.stream import StateReader, joined, laid_over, written
from isoscope.store.swap import linked
from isoscope.store.tree import Node, Tree
from isoscope.survey import Survey

PATIENCE = 60.0  # seconds after which what waits in memory is written
ROOM = 512 << 20  # bytes that may wait in memory
_NAME = re.compile(r"node-(\d{1,2})-(\d{1,12})-([0-9a-f]{32})\.safetensors")


class State:
    """The merged summaries of a run, in memory or in a file."""

    def __init__(self, held: Survey | Path) -> None:
        self._held = held
        self._reader = StateReader(held) if isinstance(held, Path) else None

    @property
    def trouble(self) -> dict[str, str]:
        """Sites that produced NaN or infinity, and where."""
        return self._held.trouble if isinstance(self._held, Survey) else self._file.trouble

    @property
    def seen(self) -> dict[str, int]:
        """The rows of each source."""
        return self._held.seen if isinstance(self._held, Survey) else self._file.seen

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that have summaries, in the order they were first seen."""
        held = self._held
        places = held.held if isinstance(held, Survey) else self._file.places
        return tuple(dict.fromkeys(site for site, _ in places))

    def survey_of(self, site: str) -> Survey:
        """Return the summaries of one site."""
        held = self._held
        if isinstance(held, Survey):
            return Survey(
                {place: here for place, here in held.held.items() if place[0] == site}
            )
        return self._file.survey([place for place in self._file.places if place[0] == site])

    def by_site(self, order: Sequence[str] = ()) -> Iterator[Survey]:
        """Yield the summaries of each site, those named in `order` first."""
        here = self.sites
        named = [site for site in order if site in here]
        for site in dict.fromkeys([*named, *here]):
            yield self.survey_of(site)

    def overlay(self, second: "State", spare: Path) -> "State":
        """Return the state of a first pass with what a second one has found beside it."""
        if isinstance(self._held, Survey) and isinstance(second._held, Survey):
            for site, why in second.trouble.items():
                self._held.spoil(site, why)
            for place, found in second._held.held.items():
                if place[0] not in self._held.trouble:
                    self._held.held.setdefault(place, {}).update(found)
            return self
        parts: list[Path] = []
        for name, state in (("first", self), ("second", second)):
            if isinstance(state._held, Path):
                parts.append(state._held)
            else:
                parts.append(spare / f"{name}.state")
                written(parts[-1], state._held)
        whole = spare / "whole.state"
        laid_over(parts[0], parts[1], whole)
        return State(whole)

    def write(self, path: Path) -> None:
        """Write the state file; one that there is gets a second name."""
        if isinstance(self._held, Survey):
            written(path, self._held)
        else:
            linked(self._held, path)

    def digest(self) -> str:
        """Return what identifies this content: of its bytes as a file."""
        if isinstance(self._held, Path):
            return _digest(self._held)
        with TemporaryDirectory(prefix="isoscope-") as folder:
            path = Path(folder) / "state"
            written(path, self._held)
            return _digest(path)

    @property
    def _file(self) -> StateReader:
        assert self._reader is not None
        return self._reader


class SummaryKeeper:
    """The finished units of a stage, merged as far as they go.

    Without a folder everything stays in memory, unless there is too much of it. With
    `fresh`, nodes that are already in the folder are somebody else's and are not looked at.
    """

    def __init__(
        self,
        units: int,
        folder: Path | None = None,
        *,
        fresh: bool = False,
        patience: float = PATIENCE,
        room: int = ROOM,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.folder = folder
        self.patience, self.room, self.clock = patience, room, clock
        self.tree: Tree[Survey | Path] = Tree(units, self._join)
        self._sizes: dict[Node, int] = {}
        self._written = clock()
        self._spill: TemporaryDirectory[str] | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            if not fresh:
                self._load()

    def missing(self) -> list[int]:
        """Return the units that are not done yet, in order."""
        return list(self.tree.missing())

    def add(self, unit: int, survey: Survey) -> None:
        """Keep the summaries of a unit."""
        survey, size = _settled(survey)
        node = Node(0, unit)
        self._sizes[node] = size
        self.tree.put(node, survey)
        late = self.folder is not None and self.clock() - self._written >= self.patience
        if late or sum(self._sizes.values()) > self.room:
            self.flush()

    def adopt(self, node: Node, name: str) -> None:
        """Take over a node that another process has written to the folder."""
        assert self.folder is not None
        self.tree.put(node, self.folder / name)

    def flush(self) -> None:
        """Write what waits in memory."""
        for node, held in list(self.tree.nodes.items()):
            if isinstance(held, Survey):
                self.tree.nodes[node] = self._file_of(node, held)
        self._sizes.clear()
        self._written = self.clock()

    def hand_over(self) -> list[tuple[Node, str]]:
        """Write what waits and forget all nodes: the process that called adopts the files."""
        self.flush()
        found = [(node, path.name) for node, path in self._paths()]
        self.tree.nodes.clear()
        return found

    def total(self) -> State:
        """Return all units merged, from the first to the last; afterwards add no more."""
        first, *rest = self.tree.roots or [Survey()]
        if all(isinstance(each, Survey) for each in (first, *rest)):
            assert isinstance(first, Survey)
            for each in rest:
                assert isinstance(each, Survey)
                first.merge(each)
                first, _ = _settled(first)
            self.tree.nodes.clear()
            return State(first)
        self.flush()
        whole, *files = [path for _, path in self._paths()]
        for number, path in enumerate(files):
            fresh = self._place / f"{os.getpid()}-total-{number}.part"
            fresh.unlink(missing_ok=True)
            joined(whole, path, fresh)
            if number:
                whole.unlink()
            whole = fresh
        return State(whole)

    def close(self) -> None:
        """Remove what was spilled for want of memory."""
        if self._spill is not None:
            self._spill.cleanup()

    @property
    def _place(self) -> Path:
        if self.folder is not None:
            return self.folder
        if self._spill is None:
            self._spill = TemporaryDirectory(prefix="isoscope-")
        return Path(self._spill.name)

    def _paths(self) -> list[tuple[Node, Path]]:
        nodes = sorted(self.tree.nodes, key=lambda node: node.first)
        found = [(node, self.tree.nodes[node]) for node in nodes]
        return [(node, path) for node, path in found if isinstance(path, Path)]

    def _load(self) -> None:
        for node, path, digest in sorted(self._files(), key=lambda found: -found[0].level):
            covered = any(other.covers(node.first) for other in self.tree.nodes)
            if covered or not self.tree.holds(node) or _digest(path) != digest:
                path.unlink()
            else:
                self.tree.nodes[node] = path
        for node in list(self.tree.nodes):  # a kill may have come between two merges
            if node in self.tree.nodes:
                self.tree.put(node, self.tree.nodes[node])

    def _join(self, node: Node, left: Survey | Path, right: Survey | Path) -> Survey | Path:
        halves = Node(node.level - 1, node.index * 2), Node(node.level - 1, node.index * 2 + 1)
        for half in halves:
            self._sizes.pop(half, None)
        if isinstance(left, Survey) and isinstance(right, Survey):
            left.merge(right)
            whole, self._sizes[node] = _settled(left)
            return whole
        files = [
            self._file_of(half, held) if isinstance(held, Survey) else held
            for half, held in zip(halves, (left, right), strict=True)
        ]
        aside = self._aside(node)
        joined(files[0], files[1], aside)
        whole = self._name(aside, node)
        for each in files:
            each.unlink()
        return whole

    def _file_of(self, node: Node, survey: Survey) -> Path:
        aside = self._aside(node)
        written(aside, survey)
        return self._name(aside, node)

    def _aside(self, node: Node) -> Path:
        path = self._place / f"{os.getpid()}-{node.level}-{node.index}.part"
        for leftover in (path, path.with_name(f"{path.name}.data")):
            leftover.unlink(missing_ok=True)
        return path

    def _name(self, aside: Path, node: Node) -> Path:
        """Give a finished file its name, once its bytes are on the disk."""
        if self.folder is not None:
            with aside.open("rb") as file:
                os.fsync(file.fileno())
        name = f"node-{node.level}-{node.index}-{_digest(aside)}.safetensors"
        return aside.rename(self._place / name)

    def _files(self) -> Iterator[tuple[Node, Path, str]]:
        for path in sorted(self._place.iterdir()):
            found = _NAME.fullmatch(path.name)
            if found:
                yield Node(int(found[1]), int(found[2])), path, found[3]
            elif path.suffix in (".part", ".data"):
                with suppress(OSError):  # left by a process that was killed
                    path.unlink()


def _settled(survey: Survey) -> tuple[Survey, int]:
    """Return a survey as it is read back from a file, and its bytes.

    Merged in memory or through files, nodes then have the same bits.
    """
    size = 0
    for place in survey.held:
        meta, arrays = Survey({place: survey.held[place]}).to_state()
        size += sum(array.nbytes for array in arrays.values())
        survey.held[place] = Survey.from_state(meta, arrays).held[place]
    return survey, size


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
