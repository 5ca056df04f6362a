"""The keeper of summaries: the merge tree of a run, in memory and as files.

Nodes wait in memory and are written after about a minute, or when they take up half a
gigabyte. A file is written under a temporary name and renamed, and its name holds a
checksum of its content, its place in the tree and the run: what is there under its name is
whole, and a file that was renamed or comes from another run does not count. Files that a
larger node covers are deleted after it is written, so that a kill at any moment loses at
most what was not yet written. Two nodes in memory are merged there; files are merged place
by place, since the state of a model may be larger than memory.
"""

# pyright: reportUnknownArgumentType=error, reportUnknownLambdaType=error
# pyright: reportUnknownMemberType=error, reportUnknownParameterType=error
# pyright: reportUnknownVariableType=error, reportAny=error, reportExplicitAny=error

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from isoscope.accumulate.survey import Survey
from isoscope.store.stream import StateReader, joined, laid_over, written
from isoscope.store.swap import linked, sync
from isoscope.store.tree import Node, Tree
from isoscope.store.writing import writing

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

    def file(self, spare: Callable[[], Path], name: str) -> Path:
        """Return a file that holds the state; one in memory is written to the spare folder."""
        if isinstance(self._held, Path):
            return self._held
        path = spare() / name
        path.unlink(missing_ok=True)
        written(path, self._held)
        return path

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

    Without a folder everything stays in memory; what is beyond `room` goes to the folder
    that `spare` returns, where there is one. `id` identifies the stage of the run. With
    `fresh`, nodes that are already in the folder are somebody else's and are not looked at.
    """

    def __init__(
        self,
        units: int,
        folder: Path | None = None,
        *,
        id: str = "",
        spare: Callable[[], Path] | None = None,
        fresh: bool = False,
        patience: float = PATIENCE,
        room: int = ROOM,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.folder, self.id, self.spare = folder, id, spare
        self.patience, self.room, self.clock = patience, room, clock
        self.tree: Tree[Survey | Path] = Tree(units, self._join)
        self._sizes: dict[Node, int] = {}
        self._written = clock()
        if folder is not None:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                if not fresh:
                    self._load(folder)

    def missing(self) -> list[int]:
        """Return the units that are not done yet, in order."""
        return list(self.tree.missing())

    def add(self, unit: int, result: object) -> None:
        """Keep the summaries of a unit."""
        assert isinstance(result, Survey)
        survey, size = _settle(result)
        node = Node(0, unit)
        self._sizes[node] = size
        self.tree.put(node, survey)
        late = self.folder is not None and self.clock() - self._written >= self.patience
        if late or sum(self._sizes.values()) > self.room:
            self._write()

    def adopt(self, node: Node, name: str) -> None:
        """Take over a node that another process has written to the folder."""
        assert self.folder is not None
        self.tree.put(node, self.folder / name)

    def flush(self) -> None:
        """Write what waits in memory to the folder, where there is one."""
        if self.folder is not None:
            self._write()

    @property
    def has_files(self) -> bool:
        """Whether any node is a file."""
        return any(isinstance(each, Path) for each in self.tree.nodes.values())

    def hand_over(self) -> list[tuple[Node, str]]:
        """Write what waits and forget all nodes: the process that called adopts the files."""
        self.flush()
        found = [(node, path.name) for node, path in self._paths()]
        self.tree.nodes.clear()
        return found

    def total(self) -> State:
        """Return all units merged, from the first to the last; afterwards add no more."""
        first, *rest = self.tree.roots or [Survey()]
        if isinstance(first, Survey) and not self.has_files:
            for each in rest:
                assert isinstance(each, Survey)
                first.merge(each)
                first, _ = _settle(first)
            self.tree.nodes.clear()
            return State(first)
        self._write()
        whole, *files = [path for _, path in self._paths()]
        with writing(self._place):
            for number, path in enumerate(files):
                fresh = self._aside(f"total-{number}")
                joined(whole, path, fresh)
                if number:
                    whole.unlink()
                whole = fresh
        return State(whole)

    @property
    def _place(self) -> Path:
        if self.folder is not None:
            return self.folder
        assert self.spare is not None
        return self.spare()

    def _write(self) -> None:
        if self.folder is None and self.spare is None:
            return
        for node, held in list(self.tree.nodes.items()):
            if isinstance(held, Survey):
                self.tree.nodes[node] = self._file_of(node, held)
        self._sizes.clear()
        self._written = self.clock()

    def _paths(self) -> list[tuple[Node, Path]]:
        nodes = sorted(self.tree.nodes, key=lambda node: node.first)
        found = [(node, self.tree.nodes[node]) for node in nodes]
        return [(node, path) for node, path in found if isinstance(path, Path)]

    def _load(self, folder: Path) -> None:
        for node, path, digest in sorted(
            _node_files(folder), key=lambda found: -found[0].level
        ):
            covered = any(other.covers(node.first) for other in self.tree.nodes)
            if covered or not self.tree.holds(node) or self._digest(path, node) != digest:
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
            whole, self._sizes[node] = _settle(left)
            return whole
        files = [
            self._file_of(half, held) if isinstance(held, Survey) else held
            for half, held in zip(halves, (left, right), strict=True)
        ]
        with writing(self._place):
            aside = self._aside(f"{node.level}-{node.index}")
            joined(files[0], files[1], aside)
            whole = self._name(aside, node)
            if self.folder is not None:
                sync(self.folder)  # the whole is there for good before its halves are gone
            for each in files:
                each.unlink()
        return whole

    def _file_of(self, node: Node, survey: Survey) -> Path:
        with writing(self._place):
            aside = self._aside(f"{node.level}-{node.index}")
            written(aside, survey)
            return self._name(aside, node)

    def _aside(self, name: str) -> Path:
        """Return a temporary name; nothing is left there of a process with the same id."""
        path = self._place / f"{os.getpid()}-{name}.part"
        for leftover in (path, path.with_name(f"{path.name}.data")):
            leftover.unlink(missing_ok=True)
        return path

    def _name(self, aside: Path, node: Node) -> Path:
        """Give a finished file its name, once its bytes are on the disk."""
        if self.folder is not None:
            sync(aside)
        digest = self._digest(aside, node)
        name = f"node-{node.level}-{node.index}-{digest}.safetensors"
        return aside.rename(self._place / name)

    def _digest(self, path: Path, node: Node) -> str:
        return _digest(path, f"{self.id} {node.level} {node.index} ")


def _node_files(folder: Path) -> Iterator[tuple[Node, Path, str]]:
    """Yield nodes with their files; remove what a process that was killed left half-written."""
    for path in sorted(folder.iterdir()):
        found = _NAME.fullmatch(path.name)
        if not path.is_file():
            continue
        if found:
            yield Node(int(found[1]), int(found[2])), path, found[3]
        elif path.suffix in (".part", ".data"):
            with suppress(OSError):
                path.unlink()


def _settle(survey: Survey) -> tuple[Survey, int]:
    """Return a survey as it is read back from a file, and its bytes.

    Merged in memory or through files, nodes then have the same bits.
    """
    size = 0
    for place in survey.held:
        meta, arrays = Survey({place: survey.held[place]}).to_state()
        size += sum(array.nbytes for array in arrays.values())
        survey.held[place] = Survey.from_state(meta, arrays).held[place]
    return survey, size


def _digest(path: Path, label: str = "") -> str:
    digest = blake2b(label.encode(), digest_size=16)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
