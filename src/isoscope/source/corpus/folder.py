"""A folder as a corpus: all files of one kind below it, whatever lies beside them."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from isoscope.errors import SourceError
from isoscope.source.border import border, shown
from isoscope.source.corpus.audio import Audio
from isoscope.source.corpus.corpus import Corpus
from isoscope.source.corpus.fault import nothing
from isoscope.source.corpus.file import open_file
from isoscope.source.corpus.files import file_id
from isoscope.source.corpus.image import Images
from isoscope.source.corpus.several import Several
from isoscope.source.corpus.suffix import KIND_OF, POSSIBLE, format_of, is_labels
from isoscope.source.corpus.transcript import is_companion
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.corpus.whole import WholeFiles

RUN = "run.json"  # what makes a folder a run
MEDIA = ("audio", "image", "idx")
_BESIDE = ("readme", "license", "licence", "copying", "notice", "changelog")


def open_folder(folder: Path, wanted: Wanted) -> Corpus:
    """The documents of all files below a folder."""
    place = str(folder)
    if (folder / RUN).exists():
        raise SourceError(
            f"expected a corpus, got the run {place}",
            hint=f"this is a run folder: use isoscope read {place}",
            slug="run-folder",
        )
    paths = files(folder)
    chosen = _chosen(paths, wanted, place)
    formats = {chosen[path] for path in chosen}
    name = folder.name or folder.resolve().name
    if formats == {"audio"}:
        return Audio(list(chosen), folder, wanted)
    if "image" in formats:
        return _images(chosen, folder, name, wanted)
    if wanted.per == "file" or (formats == {"text"} and wanted.per is None):
        return WholeFiles(list(chosen), folder, wanted)
    return _one_by_one(list(chosen), folder, name, wanted)


def files(folder: Path) -> list[Path]:
    """Files below a folder; hidden ones, runs and whatever lies elsewhere left out."""
    found: list[Path] = []
    inside = folder.resolve()
    with border(str(folder)):
        os.scandir(folder).close()  # os.walk keeps silent about a folder it may not read
        for root, folders, names in os.walk(folder):
            if RUN in names:
                folders.clear()
                continue
            folders[:] = [each for each in folders if not each.startswith(".")]
            for each in names:
                path = Path(root) / each
                if each.startswith(".") or not path.is_file():
                    continue
                if path.resolve().is_relative_to(inside):
                    found.append(path)
    return sorted(found, key=lambda path: path.relative_to(folder).parts)


def _chosen(paths: Sequence[Path], wanted: Wanted, place: str) -> dict[Path, str]:
    """The files that are documents, with their formats, which have to go together."""
    if not paths:
        raise nothing(place, "an empty folder")
    known = {path: found for path in paths if (found := format_of(path.name)) is not None}
    if wanted.kind is not None:
        known = {path: each for path, each in known.items() if KIND_OF[each] == wanted.kind}
    media = {path.with_suffix("") for path, each in known.items() if each in MEDIA}
    chosen = {
        path: each
        for path, each in known.items()
        if not _is_beside(path, each, media) or len(known) == 1
    }
    formats = set(chosen.values())
    if not chosen:
        raise _unknown(paths, wanted, place)
    if len(formats) > 1 and formats != {"image", "idx"}:
        raise _mixed(chosen, place)
    return chosen


def _is_beside(path: Path, found: str, media: set[Path]) -> bool:
    """Whether a file only goes with others: a licence, a transcript, labels."""
    name = path.name.lower()
    if is_labels(name) or (found == "text" and name.startswith(_BESIDE)):
        return True
    if KIND_OF[found] != "text" or not media:
        return False
    companion = is_companion(name) or name.startswith(("metadata.", "labels."))
    return companion or path.with_suffix("") in media


def _one_by_one(paths: list[Path], folder: Path, name: str, wanted: Wanted) -> Corpus:
    """Each file as a corpus of its own, except for those that hold nothing."""
    with border(str(folder)):
        filled = [path for path in paths if path.stat().st_size]
    if not filled:
        raise nothing(str(folder), "only empty files")
    parts = [open_file(path, wanted, file_id(path, folder)) for path in filled]
    corpus = Several(parts, name, str(folder))
    for path in sorted(set(paths) - set(filled)):
        corpus.dropped.add("empty files", str(path))
    return corpus


def _images(chosen: dict[Path, str], folder: Path, name: str, wanted: Wanted) -> Corpus:
    plain = [path for path, each in chosen.items() if each == "image"]
    if len(plain) == len(chosen):
        return Images(plain, folder, wanted)
    idx = [path for path, each in chosen.items() if each == "idx"]
    parts = [open_file(path, wanted, file_id(path, folder)) for path in idx]
    return Several([Images(plain, folder, wanted), *parts], name, str(folder))


def _unknown(paths: Sequence[Path], wanted: Wanted, place: str) -> SourceError:
    of_kind = "" if wanted.kind is None else f" of kind {wanted.kind!r}"
    return SourceError(
        f"expected a corpus{of_kind} in {place}, got {_counted(paths)}",
        hint=f"a corpus is {POSSIBLE}; links that lead out are not followed",
        slug="corpus-kind",
    )


def _mixed(chosen: dict[Path, str], place: str) -> SourceError:
    kinds = dict.fromkeys(KIND_OF[each] for each in chosen.values())
    hint = (
        f"choose with --kind: {' or '.join(kinds)}"
        if len(kinds) > 1
        else "name one of the files, or move those of one format into a folder of their own"
    )
    return SourceError(
        f"expected files of one format in {place}, got {_counted(list(chosen))}",
        hint=hint,
        slug="corpus-mixed",
    )


def _counted(paths: Sequence[Path]) -> str:
    """Files by suffix, such as "12 .wav, 3 .txt"."""
    count = Counter(shown(path.suffix.lower()) or "without suffix" for path in paths)
    listed = [f"{n} {suffix}" for suffix, n in count.most_common(6)]
    return ", ".join(listed) + (", ..." if len(count) > 6 else "")
