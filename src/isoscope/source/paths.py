"""A folder of files: all those with a known suffix, in the order of their paths."""

import os
from collections import Counter
from pathlib import Path

from isoscope.errors import SourceError
from isoscope.source.border import border
from isoscope.source.file import OPENERS, open_file
from isoscope.source.fingerprint import of_parts
from isoscope.source.source import Source, Wanted, read_parts

RUN = "run.json"  # what makes a folder a run


def open_folder(
    folder: Path,
    wanted: Wanted,
    name: str | None = None,
    leave_out: frozenset[Path] = frozenset(),
) -> Source:
    """The rows of all files below a folder, one file after another."""
    place = str(folder)
    if (folder / RUN).exists():
        raise SourceError(
            f"expected a folder of vectors, got the run {place}",
            hint=f"this is a run folder: use isoscope read {place}",
            slug="run-folder",
        )
    paths = [path for path in _files(folder) if path.resolve() not in leave_out]
    if not paths:
        raise SourceError(
            f"expected files of vectors in {place}, got none",
            hint=f"looked for {', '.join(OPENERS)}; links that lead out are not followed",
            slug="folder-without-vectors",
        )
    names = _names(folder, paths, name)
    parts = tuple(
        open_file(path, wanted, each) for path, each in zip(paths, names, strict=True)
    )
    _same_width(parts)

    rows = [part.rows for part in parts]
    return Source(
        name or folder.resolve().name or "rows", parts[0].width,
        None if None in rows else sum(each or 0 for each in rows), True,
        _widest(parts), place, read_parts(parts),
        lambda: of_parts(part.fingerprint for part in parts),
        has_documents=parts[0].has_documents, drops=wanted.skip_bad, parts=parts,
    )  # fmt: skip


def _files(folder: Path) -> list[Path]:
    """Files that can be read, hidden ones, runs and whatever lies elsewhere left out."""
    found: list[Path] = []
    inside = folder.resolve()
    with border(str(folder)):
        os.scandir(folder).close()  # os.walk keeps silent about a folder it may not read
        for root, folders, files in os.walk(folder):
            if RUN in files:
                folders.clear()
                continue
            folders[:] = [each for each in folders if not each.startswith(".")]
            for each in files:
                path = Path(root) / each
                if each.startswith(".") or path.suffix.lower() not in OPENERS:
                    continue
                if path.is_file() and path.resolve().is_relative_to(inside):
                    found.append(path)
    return sorted(found, key=lambda path: path.relative_to(folder).parts)


def _names(folder: Path, paths: list[Path], prefix: str | None) -> list[str]:
    """Relative paths without suffix; with it where two files would have one name."""
    full = [path.relative_to(folder).as_posix() for path in paths]
    stems = [path.relative_to(folder).with_suffix("").as_posix() for path in paths]
    count = Counter(stems)
    names = [
        stem if count[stem] == 1 else whole for stem, whole in zip(stems, full, strict=True)
    ]
    return [f"{prefix}/{each}" for each in names] if prefix else names


def _same_width(parts: tuple[Source, ...]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if part.width != first.width:
            raise SourceError(
                f"expected vectors of width {first.width} as in {first.place}, "
                f"got width {part.width} in {part.place}",
                hint="measure files of different width apart",
                slug="folder-widths",
            )


def _widest(parts: tuple[Source, ...]) -> str:
    kinds = list(dict.fromkeys(part.dtype for part in parts))
    return kinds[0] if len(kinds) == 1 else "float64"
