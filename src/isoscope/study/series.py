"""The checkpoints of a series: folders, paths or revisions, the step of each, and their files.

What is wrong with a series (none, one, unknown steps, other shapes) is found before a model is
loaded, from names and from the headers of weight files.
"""

import json
import re
import struct
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, cast
from zipfile import is_zipfile

from isoscope.capture.model.folder import is_safe, read_json, unreadable, weight_files
from isoscope.dataclass import dataclass
from isoscope.engine.plan import Unit
from isoscope.errors import ConfigError, IsoscopeError
from isoscope.source.bytes import of_file

if TYPE_CHECKING:
    from isoscope.capture.model.assemble import Location

PYTHIA = tuple(
    f"step{step}" for step in (0, *(2**n for n in range(10)), *range(1000, 143_001, 1000))
)
MACHINA = tuple(f"step{i * 143 // 20 * 1000}" for i in range(21))
KNOWN = {"pythia": PYTHIA, "machina": MACHINA}
LARGEST_HEADER = 1 << 28  # bytes of JSON before the weights of a file
_NUMBER = r"[-_= ]?(\d{1,15})(?!\.?\d|e\d)"
_NAMED = re.compile(rf"(?:steps?|checkpoint|ckpt|iter|iteration){_NUMBER}", re.IGNORECASE)
_EPOCH = re.compile(rf"epoch{_NUMBER}", re.IGNORECASE)  # where there is nothing finer
_LAST = re.compile(r"(?:^|[^\d.])(?<!\de)(\d{1,15})$")
_UNFINISHED = (".", "tmp-")  # how a folder begins that a trainer renames once it is written
_OF_A_MODEL = ("config.json", "modules.json")  # in the folder of a model, not of a series
ONE = ("a trajectory", "isoscope survey")  # what needs several checkpoints, what takes one
Shapes = dict[str, tuple[int, ...]]


class Checkpoint(Unit, frozen=True, tag=True):
    """One checkpoint of a series."""

    step: int
    name: str  # as messages call it
    where: str  # a path, or a name on the hub with its revision
    broken: bool = False  # its files are known to be incomplete: it comes last
    downloaded: bool = False  # it was in the cache before the run, and stays there

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.name


def step_of(name: str) -> int | None:
    """Return the step that a name tells; None where it tells none.

    >>> [step_of(n) for n in ("step_100", "checkpoint-500", "step1000-tokens4B", "7", "best")]
    [100, 500, 1000, 7, None]
    >>> step_of("epoch_0.5"), step_of("step_1e5"), step_of("step500-epoch3")
    (None, None, 500)
    """
    for pattern in (_NAMED, _EPOCH, _LAST):
        found: list[str] = pattern.findall(name)
        if found:
            return int(found[-1])
    return None


def is_series(names: Sequence[str], revisions: Sequence[str] | None = None) -> bool:
    """Whether names are those of several checkpoints, and not of one model.

    A folder is a series where it holds checkpoints and no model itself: what a trainer leaves
    is one model, and the checkpoints beside it.
    """
    if revisions is not None or len(names) > 1:
        return True
    folder = Path(names[0]).expanduser() if names else Path()
    if not names or not folder.is_dir() or any((folder / n).exists() for n in _OF_A_MODEL):
        return False
    return any(map(_is_checkpoint, folder.iterdir()))


def find_checkpoints(
    names: Sequence[str],
    revisions: Sequence[str] | None = None,
    one: tuple[str, str] = ONE,
) -> list[Checkpoint]:
    """Return the checkpoints of a series in the order of their steps.

    `one` is for the error where there is one only: what needs more, and what does not.
    """
    if revisions is not None:
        places = _revisions(names, revisions)
    elif len(names) == 1 and Path(names[0]).expanduser().is_dir():
        places = _folders(Path(names[0]).expanduser(), one)
    elif len(names) == 1:
        raise _not_a_series(names[0])
    else:
        places = [(_last_part(each), each) for each in names]
    return _in_order(places, one)


def _in_order(places: Sequence[tuple[str, str]], one: tuple[str, str]) -> list[Checkpoint]:
    found: dict[int, Checkpoint] = {}
    for name, where in places:
        step = step_of(name)
        if step is None:
            raise ConfigError(
                f"cannot tell the step of the checkpoint {name!r} from its name",
                hint="rename it to step_N, checkpoint-N or stepN, where N is the step, or list "
                "the checkpoints to follow as paths with commas between them",
                slug="series-step",
            )
        if step in found:
            raise ConfigError(
                f"expected one checkpoint of each step, got {found[step].name!r} and {name!r} "
                f"of step {step}",
                hint="leave one of them out, or rename it",
                slug="series-step",
            )
        found[step] = Checkpoint(step, name, where)
    if len(found) < 2:
        raise _only(next(iter(found.values())).name, one)
    return [found[step] for step in sorted(found)]


def _revisions(names: Sequence[str], revisions: Sequence[str]) -> list[tuple[str, str]]:
    """Return the revisions of a model of the hub."""
    if len(names) != 1 or Path(names[0]).expanduser().exists() or "@" in names[0]:
        raise ConfigError(
            f"cannot take --revisions of {', '.join(names)}: they are of one name on the hub",
            hint="a folder of checkpoints needs none; name a model as on the hub",
            slug="series-revisions",
        )
    found = [each for name in revisions for each in KNOWN.get(name, (name,))]
    return [(each, f"{names[0]}@{each}") for each in dict.fromkeys(found)]


def _only(name: str, one: tuple[str, str]) -> ConfigError:
    return ConfigError(
        f"{one[0]} needs at least 2 checkpoints, got 1: {name!r}",
        hint=f"name the folder that holds all of them; {one[1]} measures one",
        slug="series-one",
    )


def _folders(folder: Path, one: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the checkpoints in a folder; other entries are ignored.

    So are links to other checkpoints of the folder, such as `latest`, and what a trainer is
    still writing.
    """
    found = _inside(folder)
    named = {each.resolve() for each in found if not each.is_symlink()}
    found = [each for each in found if not each.is_symlink() or each.resolve() not in named]
    if found:
        return [(_step_part(each), str(each)) for each in found]
    if (folder / "config.json").is_file():
        raise _only(folder.name, one)
    below = [each for each in sorted(folder.iterdir()) if each.is_dir() and _inside(each)]
    raise ConfigError(
        f"expected folders of checkpoints in {str(folder)!r}, got none",
        hint=f"there are some in {str(below[0])!r}: name that folder"
        if below
        else "each checkpoint is a folder with config.json and weights, such as step_1000 or "
        "checkpoint-500",
        slug="series-empty",
    )


def _inside(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, but for those that are being written."""
    return [
        each
        for each in sorted(folder.iterdir())
        if not each.name.startswith(_UNFINISHED) and _is_checkpoint(each)
    ]


def _is_checkpoint(path: Path) -> bool:
    """Whether a path is meant as a checkpoint: a model folder, or one called like it."""
    if path.suffix == ".gguf" and path.is_file():
        return True
    if not path.is_dir():
        return False
    weights = any(path.glob("*.safetensors")) or any(path.glob("pytorch_model*.bin"))
    named = _NAMED.fullmatch(path.name) or _EPOCH.fullmatch(path.name)
    return (path / "config.json").is_file() or weights or named is not None


def _last_part(where: str) -> str:
    """Return the part of a path or hub name that tells the step."""
    if "@" in where and not Path(where).exists():
        return where.partition("@")[2]
    return _step_part(Path(where).expanduser())


def _step_part(path: Path) -> str:
    """Return the name of a folder, or of a file without its ending.

    It is that of what a link refers to, where the name of the link tells no step.
    """
    names = [p.stem if p.suffix == ".gguf" else p.name for p in (path, path.resolve())]
    return names[0] if step_of(names[0]) is not None else names[1]


def _not_a_series(name: str) -> ConfigError:
    path = Path(name)
    if path.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        return ConfigError(
            f"expected a folder of checkpoints, got {name!r}, which is "
            + ("a file" if path.exists() else "not there"),
            hint="name the folder that holds the checkpoints, or several paths with commas",
            slug="series-empty",
        )
    return ConfigError(
        f"expected --revisions of the model {name!r} on the hub, got none",
        hint=f"there is no folder {name!r} here; a model on the hub needs --revisions "
        "step0,step1000 or --revisions pythia",
        slug="series-revisions",
    )


# --- files --------------------------------------------------------------------------------
@dataclass(frozen=True)
class CheckpointFiles:
    """What the files of a checkpoint on this machine tell without loading it."""

    shapes: Shapes  # of its weights; empty where only loading tells
    fingerprint: str  # of the weight files; empty where they cannot be read
    vocabulary: str  # fingerprint of the tokenizer files; empty where there are none
    problem: str = ""  # why it cannot be loaded


def read_files(where: str) -> CheckpointFiles | None:
    """Return what is known of a checkpoint before it is loaded; None of one on the hub."""
    from isoscope.capture.model.tokenizer import tokenizer_files

    path = Path(where).expanduser()
    if path.is_file():
        return CheckpointFiles({}, of_file(path), "")
    if not path.is_dir():
        return None
    inner = path / "0_Transformer"
    folder = inner if inner.is_dir() else path
    try:
        weights = weight_files(folder)
        read_json(folder / "config.json")
        shapes: Shapes = {}
        if is_safe(weights):
            for each in weights:
                shapes |= read_shapes(each)
        else:
            for each in weights:
                check_archive(each)
        words = _fingerprint(tokenizer_files(folder))
        return CheckpointFiles(shapes, _fingerprint(weights), words)
    except IsoscopeError as error:
        return CheckpointFiles({}, "", "", error.problem)


def read_shapes(path: Path) -> Shapes:
    """Return the shapes of the tensors of a safetensors file that is whole."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(8)
            length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
            if not 2 <= length <= min(size - 8, LARGEST_HEADER):
                raise unreadable(path, f"a file of {size} bytes that is cut in its header")
            entries = cast(dict[str, dict[str, list[int]]], json.loads(file.read(length)))
        tensors = {name: each for name, each in entries.items() if name != "__metadata__"}
        end = max((each["data_offsets"][1] for each in tensors.values()), default=0)
        if size != 8 + length + end:
            raise unreadable(path, f"{size} of {8 + length + end} bytes: it is truncated")
        return {name: tuple(each["shape"]) for name, each in tensors.items()}
    except OSError as error:
        raise unreadable(path, error.strerror or "no content") from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise unreadable(path, f"a damaged header ({error!r})") from error


def check_archive(path: Path) -> None:
    """Refuse a file of torch that is cut: a zip archive has its directory at the end."""
    try:
        with path.open("rb") as file:
            is_archive = file.read(4) == b"PK\x03\x04"
        if is_archive and not is_zipfile(path):
            raise unreadable(path, f"an archive of {path.stat().st_size} bytes that is cut")
    except OSError as error:
        raise unreadable(path, error.strerror or "no content") from error


def _fingerprint(paths: Sequence[Path]) -> str:
    """Return what identifies the content of files; empty for none."""
    if not paths:
        return ""
    prints = (f"{each.name} {of_file(each)}" for each in sorted(paths))
    return blake2b("\n".join(prints).encode(), digest_size=16).hexdigest()


def check_alike(files: Sequence[tuple[Checkpoint, CheckpointFiles | None]]) -> None:
    """Refuse a series whose checkpoints have other shapes or other vocabularies."""
    known = [(each, f) for each, f in files if f is not None and not f.problem]
    shaped = [(each, f) for each, f in known if f.shapes]
    for (first, ours), (other, theirs) in ((shaped[0], each) for each in shaped[1:]):
        names = dict.fromkeys((*ours.shapes, *theirs.shapes))
        for name in names:
            a, b = ours.shapes.get(name), theirs.shapes.get(name)
            if a != b:
                raise other_shape(first.name, other.name, f"{name} {_shape(a)}", _shape(b))
    worded = [(each, f) for each, f in known if f.vocabulary]
    for (first, ours), (other, theirs) in ((worded[0], each) for each in worded[1:]):
        if ours.vocabulary != theirs.vocabulary:
            raise other_vocabulary(first.name, other.name)
    wordless = [each for each, f in shaped if not f.vocabulary]
    if worded and wordless:
        raise ConfigError(
            f"expected a tokenizer in every checkpoint, as {worded[0][0].name!r} has it, got "
            f"none in {wordless[0].name!r}",
            hint=f"copy tokenizer.json and tokenizer_config.json of {worded[0][0].name!r} into "
            "the others",
            slug="series-vocabulary",
        )


def _shape(shape: tuple[int, ...] | None) -> str:
    return "missing" if shape is None else " x ".join(map(str, shape)) or "one number"


def other_shape(first: str, other: str, ours: str, theirs: str) -> ConfigError:
    """Return the error for checkpoints that are not of one model."""
    return ConfigError(
        f"cannot follow {first!r} to {other!r}: {ours} becomes {theirs}",
        hint="a series is of one model: leave out what has another width, depth or vocabulary",
        slug="series-shapes",
    )


def other_vocabulary(first: str, other: str) -> ConfigError:
    """Return the error for checkpoints that read texts in different ways."""
    return ConfigError(
        f"cannot follow {first!r} to {other!r}: their tokenizers differ",
        hint="all checkpoints of a series read the same tokens; use the files of one tokenizer",
        slug="series-vocabulary",
    )


# --- the hub ------------------------------------------------------------------------------
def is_on_hub(where: str) -> bool:
    """Whether a checkpoint is a name of the hub."""
    return not Path(where).expanduser().exists()


def locate_files(
    where: str, *, code: bool, weights: bool, say: Callable[[str], None]
) -> "Location":
    """Return where the files of a checkpoint are, downloaded if it is on the hub."""
    from isoscope.capture.model.assemble import locate

    return locate(where, revision=None, code=code, weights=weights, say=say)


def hub_name(where: str) -> tuple[str, str]:
    """Return the name and the revision of a checkpoint on the hub."""
    name, _, revision = where.partition("@")
    return name, revision or "main"
