"""Where exceptions of the system and of other libraries become errors of ours."""

from collections.abc import Generator
from contextlib import contextmanager

from isoscope.errors import IsoscopeError, SourceError


@contextmanager
def border(place: str, kind: str = "") -> Generator[None]:
    """Turn what goes wrong inside into one clear error that names the file.

    With a kind, such as "a parquet file", any exception is taken as damage: zipfile and
    pyarrow raise a dozen different ones for broken input. Without it, only those of the
    operating system are translated, so that our own mistakes still show a traceback.
    """
    try:
        yield
    except IsoscopeError:
        raise
    except OSError as error:
        if kind and error.errno is None:  # pyarrow says OSError for broken content, too
            raise damaged(place, kind, _reason(error)) from error
        raise unreadable(place, error) from error
    except Exception as error:
        if not kind:
            raise
        raise damaged(place, kind, _reason(error)) from error


def unreadable(place: str, error: OSError) -> SourceError:
    """Return the error for a file that is not there or may not be read."""
    if isinstance(error, FileNotFoundError):
        return SourceError(
            f"expected a file or folder at {place}, got nothing of that name",
            hint="check the spelling and the folder you are in",
            slug="file-missing",
        )
    return SourceError(
        f"expected a readable file at {place}, got {(error.strerror or str(error)).lower()!r}",
        hint="check its permissions and the disk or network it lies on",
        slug="file-unreadable",
    )


def damaged(place: str, kind: str, reason: str) -> SourceError:
    """Return the error for content that is not what it claims to be."""
    return SourceError(
        f"expected {kind} at {place}, got damaged content ({shown(reason)})",
        hint="write or copy the file again; if it has another format, give it that suffix",
        slug="file-damaged",
    )


def truncated(place: str, expected: int, got: int) -> SourceError:
    """Return the error for a file that is shorter, or longer, than its header says."""
    short = got < expected
    return SourceError(
        f"expected {expected} bytes in {place}, got {got}",
        hint="the file was cut off: write or copy it again"
        if short
        else "something follows the array: save each array in a file of its own",
        slug="file-truncated" if short else "file-trailing",
    )


def empty(place: str) -> SourceError:
    """Return the error for a file or stream of no bytes."""
    return SourceError(
        f"expected vectors in {place}, got an empty file",
        hint="check the step that writes it; vectors are rows of numbers",
        slug="file-empty",
    )


def shown(text: str) -> str:
    """Words out of a file as a message may print them: one line, no escape sequences."""
    short = text if len(text) <= 120 else f"{text[:117]}..."
    return "".join(each if each.isprintable() else "?" for each in short)


def _reason(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0] or type(error).__name__
    return first.rstrip(". ")
