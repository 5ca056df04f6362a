"""Keepers of what units found: a merge tree of summaries, or a list of records.

A file is written under a temporary name and renamed, and its name holds a checksum of its
content, of what it is and of the run: what is there under its name is whole, and a file that
was renamed or comes from another run does not count. A kill at any moment loses at most what
was not yet written.
"""

import os
import re
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf
from pathlib import Path
from time import monotonic
from typing import Generic, TypeAlias, TypeVar

import msgspec

from isoscope.accumulate.survey import Accumulators, Place, Survey
from isoscope.errors import StoreError
from isoscope.store.atomic import sync, write_whole, writing
from isoscope.store.schema import plain_values
from isoscope.store.state import (
    AsRead,
    Joined,
    Readable,
    State,
    StateReader,
    StateWriter,
    UsedUp,
    copy_state,
    file_digest,
    write_state,
)

PATIENCE = 60.0  # seconds after which what waits in memory is written
ROOM = 32 << 20  # bytes that may wait in memory
TOP = 64  # the level above all nodes
TASK = "task-"  # how folders begin in which a worker elsewhere leaves its results
_HERE = os.urandom(4).hex()  # processes on several machines may have the same number
_UNIT_FILE = re.compile(r"unit-(\d{1,12})-([0-9a-f]{32})\.msgpack")
_NODE_FILE = re.compile(r"node-(\d{1,2})-(\d{1,12})-([0-9a-f]{32})\.safetensors")
T = TypeVar("T")
# In memory, in an unfinished file, written; or not settled yet, which no node stays.
Content: TypeAlias = "Survey | StateWriter | Path | Unsettled"


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A place in the tree: units index * 2^level up to, not including, the next node's."""

    level: int
    index: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.level}-{self.index}"

    @property
    def first(self) -> int:
        """The first unit it covers."""
        return self.index << self.level

    def covers(self, unit: int) -> bool:
        """Whether a unit is below this node."""
        return unit >> self.level == self.index

    @property
    def parent(self) -> "Node":
        """The node one level up."""
        return Node(self.level + 1, self.index // 2)

    @property
    def sibling(self) -> "Node":
        """The other half of the parent."""
        return Node(self.level, self.index ^ 1)


@dataclass
class Tree(Generic[T]):
    """The finished nodes of a run, merged as far up as they go.

    `join` makes a node out of its two halves, and is the only thing that ever does.

    Sums of floating-point numbers depend on the order of the additions. A node of the tree
    covers 2^level consecutive units; it is the merge of its two halves and of nothing else, so
    that a run that was killed and resumed, or spread over many workers, gives the same bits.
    """

    units: int
    join: Callable[[Node, T, T], T]
    is_whole: Callable[[Node, T], bool] | None = None  # of a node that has waited
    nodes: dict[Node, T] = field(default_factory=dict[Node, T])

    def holds(self, node: Node) -> bool:
        """Whether a node covers units of this run and no others."""
        return node.level < TOP and (node.index + 1) << node.level <= self.units

    def put(self, node: Node, result: T) -> None:
        """Take in a finished node, and merge upwards while both halves are there.

        A half that was damaged while it waited is dropped: its units are missing again.
        """
        self.nodes[node] = result
        while node.sibling in self.nodes:
            beside = self.nodes[node.sibling]
            if self.is_whole is not None and not self.is_whole(node.sibling, beside):
                del self.nodes[node.sibling]
                return
            # Taken out first: a merge that is interrupted may have changed a half, which
            # must never count again.
            left, right = (self.nodes.pop(half) for half in sorted((node, node.sibling)))
            node = node.parent
            self.nodes[node] = self.join(node, left, right)

    def missing(self) -> Iterator[int]:
        """Yield the units that no node covers yet, in order."""
        covered = sorted((node.first, node.first + (1 << node.level)) for node in self.nodes)
        unit = 0
        for start, end in [*covered, (self.units, self.units)]:
            yield from range(unit, min(start, self.units))
            unit = max(unit, end)

    @property
    def roots(self) -> list[T]:
        """What is to be added up at the end, from the first unit to the last."""
        return [self.nodes[node] for node in sorted(self.nodes, key=lambda node: node.first)]


@dataclass(frozen=True, eq=False)
class Unsettled:
    """A node that is still in parts: they are merged, place by place, when it is written."""

    content: Readable
    parts: tuple["StateWriter | Path", ...] = ()  # that are of no more use once it is


class SummaryKeeper:
    """The finished units of a stage, merged as far up the tree as they go.

    Nodes wait in memory; those that take up more than `room` wait in unfinished files, which
    cost no checksum and are never waited for. After about a minute all are written; files
    that a larger node covers are deleted after it is written. Two nodes in memory are merged
    there; files are merged place by place, since the state of a model may be larger than
    memory.

    Without a folder what is beyond `room` goes to the folder that `spare` returns, where
    there is one. `id` identifies the stage of the run. With `fresh`, nodes that are already
    in the folder belong to another process and are ignored.
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
        self.tree: Tree[Content] = Tree(units, self._join, self._is_whole)
        self._lost: list[int] = []
        self._sizes: dict[Node, int] = {}
        self._covered: list[Path] = []  # files of nodes below one that is not written yet
        self._written = clock()
        if folder is not None:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                if not fresh:
                    collect_tasks(folder)
                    self._load(folder)

    def missing(self) -> list[int]:
        """Return the units that are not done yet, in order."""
        return list(self.tree.missing())

    def has(self, unit: int) -> bool:
        """Whether a unit is done."""
        return any(node.covers(unit) for node in self.tree.nodes)

    def add(self, unit: int, result: object) -> None:
        """Keep the summaries of a unit."""
        assert isinstance(result, Survey)
        node = Node(0, unit)
        beside = self.tree.nodes.get(node.sibling)
        if beside is None or isinstance(beside, Survey):
            self._put(node, self._settle(node, result))
        else:  # merged with what is in a file, and written once
            self._put(node, Unsettled(AsRead(result)))
        self._make_room()

    def _put(self, node: Node, content: Content) -> None:
        """Take in a node, merge upwards, and write what came of that."""
        self.tree.put(node, content)
        for each, found in list(self.tree.nodes.items()):
            if isinstance(found, Unsettled):
                # Taken out meanwhile, as in `Tree.put`.
                self.tree.nodes[each] = self._write_parts(each, self.tree.nodes.pop(each))

    def _settle(self, node: Node, survey: Survey) -> "Survey | StateWriter":
        """Return a survey as it is read back from a file; in one if it is beyond the room.

        Merged in memory or through files, nodes then have the same bits.
        """
        rest, settled = survey.held, dict[Place, Accumulators]()
        size = 0
        for place in list(rest):
            meta, arrays = Survey({place: rest.pop(place)}).to_state()  # not twice in memory
            settled |= Survey.from_state(meta, arrays).held
            size += sum(array.nbytes for array in arrays.values())
            if size > self._room:
                survey.held = settled | rest
                with self._unfinished(node.name) as out:
                    copy_state(UsedUp(survey), out)
                return out
        survey.held, self._sizes[node] = settled, size
        return survey

    def adopt(self, node: Node, path: Path) -> bool:
        """Take over a node that another process has written; False where it is damaged.

        One that is in another folder is moved to this one.
        """
        found = _NODE_FILE.fullmatch(path.name)
        try:
            whole = found is not None and self._digest(path, node) == found[3]
        except OSError:
            whole = False
        if not whole:
            with suppress(OSError):
                path.unlink()
            return False
        self._put(node, _move(path, self.folder))
        self._make_room()
        return True

    def _is_whole(self, node: Node, content: Content) -> bool:
        """Whether a file is as it was written; what it held is noted where it is not."""
        found = _NODE_FILE.fullmatch(content.name) if isinstance(content, Path) else None
        if found is None or not isinstance(content, Path):
            return True
        with suppress(OSError):
            if self._digest(content, node) == found[3]:
                return True
            content.unlink()
        self._lost += range(node.first, node.first + (1 << node.level))
        return False

    def drain_lost(self) -> list[int]:
        """Return units that were kept and are missing again, since their file was damaged."""
        found, self._lost = self._lost, []
        return found

    def _make_room(self) -> None:
        """Write all nodes when it is time; else put those beyond the room out of memory."""
        if self.folder is not None and self.clock() - self._written >= self.patience:
            self._write()
        elif sum(self._sizes.values()) > self._room:
            for node, content in list(self.tree.nodes.items()):
                if isinstance(content, Survey):
                    with self._unfinished(node.name) as out:
                        copy_state(content, out)
                    self.tree.nodes[node] = out
            self._sizes.clear()

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
        for node, content in self.tree.nodes.items():
            if not self._is_whole(node, content):
                raise StoreError(
                    f"the result of units {node.first} and following was damaged on the disk",
                    hint="the same command computes it again; check the disk",
                    slug="store-damaged",
                )
        first, *rest = self.tree.roots or [Survey()]
        for number, each in enumerate(rest):
            first = self._merge(first, each, Node(TOP, number))
        self.tree.nodes.clear()
        if isinstance(first, Unsettled):
            first = self._write_parts(Node(TOP, len(rest)), first)
        return State(_opened(first))

    @property
    def _has_place(self) -> bool:
        return self.folder is not None or self.spare is not None

    @property
    def _room(self) -> float:
        """How many bytes may wait; the only unit of a stage waits for no other."""
        return self.room if self._has_place and self.tree.units > 1 else inf

    @property
    def _place(self) -> Path:
        if self.folder is not None:
            return self.folder
        assert self.spare is not None
        return self.spare()

    def _write(self) -> None:
        """Write all nodes; only then the files that they cover are of no more use."""
        if not self._has_place:
            return
        for node, content in list(self.tree.nodes.items()):
            if isinstance(content, Survey | StateWriter):
                self.tree.nodes[node] = self._file_of(node, content)
        if self._covered:
            with writing(self._place):
                if self.folder is not None:
                    sync(self.folder)
                for each in self._covered:
                    each.unlink(missing_ok=True)
            self._covered.clear()
        self._sizes.clear()
        self._written = self.clock()

    def _paths(self) -> list[tuple[Node, Path]]:
        found = sorted(self.tree.nodes.items(), key=lambda each: each[0].first)
        return [(node, path) for node, path in found if isinstance(path, Path)]

    def _load(self, folder: Path) -> None:
        found = [
            (Node(int(name[1]), int(name[2])), path, name[3])
            for name, path in _named_files(folder, _NODE_FILE)
        ]
        for node, path, digest in sorted(found, key=lambda each: -each[0].level):
            covered = any(other.covers(node.first) for other in self.tree.nodes)
            if covered or not self.tree.holds(node) or self._digest(path, node) != digest:
                path.unlink()
            else:
                self.tree.nodes[node] = path
        for node in list(self.tree.nodes):  # a kill may have come between two merges
            if node in self.tree.nodes:
                self._put(node, self.tree.nodes[node])
        self._write()

    def _join(self, node: Node, left: Content, right: Content) -> Content:
        for half in (Node(node.level - 1, node.index * 2 + side) for side in (0, 1)):
            self._sizes.pop(half, None)
        return self._merge(left, right, node)

    def _merge(self, left: Content, right: Content, node: Node) -> Content:
        """Return two nodes as one: merged if both are in memory, else what writes it."""
        if isinstance(left, Survey) and isinstance(right, Survey):
            left.merge(right)
            return self._settle(node, left)
        if isinstance(left, StateWriter) and _are_apart(left.reader(), _readable(right)):
            with writing(self._place):
                copy_state(_readable(right), left)  # matrices beside what the passes gave
            self._give_up(_parts(right))
            return left
        return Unsettled(
            Joined(_readable(left), _readable(right)), (*_parts(left), *_parts(right))
        )

    def _write_parts(self, node: Node, content: Content) -> StateWriter:
        """Write a node that is still in parts to an unfinished file."""
        assert isinstance(content, Unsettled)
        with self._unfinished(node.name) as out:
            copy_state(content.content, out)
        self._give_up(content.parts)
        return out

    def _give_up(self, parts: "tuple[StateWriter | Path, ...]") -> None:
        """Discard unfinished files that are merged; files wait until the whole is written."""
        for each in parts:
            if isinstance(each, StateWriter):
                each.discard()
            else:
                self._covered.append(each)

    @contextmanager
    def _unfinished(self, name: str) -> Generator[StateWriter]:
        """Return what takes a state and stays unfinished; it is gone if that goes wrong."""
        with writing(self._place):
            out = StateWriter(self._part_path(name))
            try:
                yield out
            except BaseException:
                out.discard()
                raise

    def _file_of(self, node: Node, content: Survey | StateWriter) -> Path:
        with writing(self._place):
            if isinstance(content, Survey):
                part = self._part_path(node.name)
                write_state(part, content)
            else:
                part = content.path
                content.finish()
                content.discard()
            return self._name(part, node)

    def _part_path(self, name: str) -> Path:
        """Return a temporary name; nothing is left there of a process with the same id."""
        path = self._place / f"{_HERE}-{os.getpid()}-{name}.part"
        for leftover in (path, path.with_name(f"{path.name}.data")):
            leftover.unlink(missing_ok=True)
        return path

    def _name(self, part: Path, node: Node) -> Path:
        """Give a finished file its name, once its bytes are on the disk."""
        if self.folder is not None:
            sync(part)
        name = f"node-{node.name}-{self._digest(part, node)}.safetensors"
        return part.rename(self._place / name)

    def _digest(self, path: Path, node: Node) -> str:
        return file_digest(path, f"{self.id} {node.level} {node.index} ")


def _move(path: Path, folder: Path | None) -> Path:
    """Give a file the same name in another folder, unless it is there."""
    if folder is None or path.parent == folder:
        return path
    with writing(folder):
        return path.replace(folder / path.name)


def unit_of(path: Path) -> int | None:
    """Return the unit whose record a file is called after; None where it is none."""
    found = _UNIT_FILE.fullmatch(path.name)
    return None if found is None else int(found[1])


def node_of(path: Path) -> Node | None:
    """Return the node that a file is called after; None where it is none."""
    found = _NODE_FILE.fullmatch(path.name)
    return None if found is None else Node(int(found[1]), int(found[2]))


def collect_tasks(folder: Path) -> None:
    """Take up what workers of an earlier driver have written and nobody has adopted.

    Files are checked like all others when they are loaded.
    """
    for task in sorted(folder.glob(f"{TASK}*")):
        for path in sorted(task.iterdir()) if task.is_dir() else ():
            if _UNIT_FILE.fullmatch(path.name) or _NODE_FILE.fullmatch(path.name):
                with suppress(OSError):  # a worker that is about to end may have removed it
                    path.replace(folder / path.name)
        shutil.rmtree(task, ignore_errors=True)


def _named_files(folder: Path, name: re.Pattern[str]) -> Iterator[tuple[re.Match[str], Path]]:
    """Yield files with such a name; remove what a process that was killed left half-written."""
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        if found := name.fullmatch(path.name):
            yield found, path
        elif path.suffix in (".part", ".data"):
            with suppress(OSError):
                path.unlink()


def count_units(folder: Path, units: int) -> int:
    """Return how many of the units of a stage are done, by the names of files in its folder.

    Nothing is opened or removed: another process may be at work there.
    """
    done: set[int] = set()
    for path in folder.iterdir() if folder.is_dir() else ():
        if found := _UNIT_FILE.fullmatch(path.name):
            done.add(int(found[1]))
        elif found := _NODE_FILE.fullmatch(path.name):
            node = Node(min(int(found[1]), TOP), int(found[2]))
            done.update(
                range(min(node.first, units), min(node.first + (1 << node.level), units))
            )
    return len(done & {*range(units)})


def _are_apart(left: Readable, right: Readable) -> bool:
    """Whether two states have no site and no source in common: one lies beside the other."""
    mine = {*left.sites, *left.trouble, *left.seen}
    return not mine & {*right.sites, *right.trouble, *right.seen}


def _readable(content: Content) -> Readable:
    return content.content if isinstance(content, Unsettled) else _opened(content)


def _opened(content: Survey | StateWriter | Path) -> Survey | StateReader:
    if isinstance(content, StateWriter):
        return content.reader()
    return StateReader(content) if isinstance(content, Path) else content


def _parts(content: Content) -> "tuple[StateWriter | Path, ...]":
    """Return the files that a node is in."""
    if isinstance(content, Unsettled):
        return content.parts
    return () if isinstance(content, Survey) else (content,)


class RecordKeeper:
    """One record for each unit that is done; in memory where there is no folder."""

    def __init__(self, units: int, folder: Path | None = None, *, id: str = "") -> None:
        self.units = units
        self.folder = folder
        self.id = id
        self.records: dict[int, object] = {}
        if folder is not None:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                collect_tasks(folder)
                self._load(folder)

    def missing(self) -> list[int]:
        """Return the units that are not done yet, in order."""
        return [number for number in range(self.units) if number not in self.records]

    def has(self, unit: int) -> bool:
        """Whether a unit is done."""
        return unit in self.records

    def add(self, unit: int, result: object) -> str:
        """Keep the record of a unit; return the name of its file."""
        content = msgspec.msgpack.encode(plain_values(result))
        name = f"unit-{unit}-{self._digest(unit, content)}.msgpack"
        if self.folder is not None:
            with writing(self.folder):
                write_whole(self.folder / name, content)
        # As it is read back, so that a resumed run has the same values.
        self.records[unit] = msgspec.msgpack.decode(content)
        return name

    def adopt(self, unit: int, path: Path) -> bool:
        """Take over a record that another process has written; False where it is damaged."""
        found = _UNIT_FILE.fullmatch(path.name)
        try:
            content = path.read_bytes()
        except OSError:
            return False
        if found is None or self._digest(unit, content) != found[2]:
            with suppress(OSError):
                path.unlink()
            return False
        _move(path, self.folder)
        self.records[unit] = msgspec.msgpack.decode(content)
        return True

    def flush(self) -> None:
        """Nothing waits: records are written as they come."""

    def drain_lost(self) -> list[int]:
        """Return nothing: records are in memory as well."""
        return []

    def total(self) -> list[object]:
        """Return the records of all units that are done, in order."""
        return [self.records[number] for number in sorted(self.records)]

    def _load(self, folder: Path) -> None:
        for name, path in _named_files(folder, _UNIT_FILE):
            number, content = int(name[1]), path.read_bytes()
            if number < self.units and self._digest(number, content) == name[2]:
                self.records[number] = msgspec.msgpack.decode(content)
            else:
                path.unlink()

    def _digest(self, unit: int, content: bytes) -> str:
        label = f"{self.id} {unit} ".encode()
        return blake2b(label + content, digest_size=16).hexdigest()
