"""Make the text that isoscope brings along, from public-domain speeches and plays.

python bench/bundle.py FOLDER   with inaugural.zip, state_union.zip and tinyshakespeare.txt
"""

import random
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

OUT = Path(__file__).parents[1] / "src/isoscope/source/corpus/bundled/text.txt"
FEWEST, MOST = 40, 250  # words a document
SEED = 2024
BYTES = 850_000
SHARES = {"inaugural": 0.3, "state_union": 0.45, "plays": 0.25}


def tidied(text: str) -> str:
    """Return one line without the marks of transcribers."""
    text = re.sub(r"[\[(](?:laughter|applause)[^)\]]*[\])]", " ", text, flags=re.IGNORECASE)
    text = text.replace("\u00a0", " ").replace("\ufeff", "")
    return " ".join(text.split())


def decoded(raw: bytes) -> str | None:
    """Return a speech as text, or None where its letters cannot be told for sure."""
    try:
        return raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs; short ones are joined with the next, long ones cut at sentences."""
    held: list[str] = []
    for line in filter(None, map(tidied, text.split("\n"))):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z\"'])", line):
            words = len(" ".join([*held, sentence]).split())
            if held and words > MOST:
                yield " ".join(held)
                held = []
            held.append(sentence)
        if len(" ".join(held).split()) >= FEWEST:
            yield " ".join(held)
            held = []


def scenes(text: str) -> Iterator[str]:
    """Yield a few speeches in a row, with who speaks, as they stand in a play."""
    held: list[str] = []
    for speech in map(tidied, re.split(r"\n\n+", text)):
        if held and len(" ".join([*held, speech]).split()) > MOST:
            yield " ".join(held)
            held = []
        held.append(speech)
        if len(" ".join(held).split()) >= 2 * FEWEST:
            yield " ".join(held)
            held = []


def usable(text: str) -> bool:
    """Whether a document is prose of the right size, and not a heading or a table."""
    words = text.split()
    letters = [each for each in text if each.isalpha()]
    lower = sum(each.islower() for each in letters)
    plain = text.isascii() or all(each in "“”‘’—–…éèñ" for each in text if ord(each) > 127)
    return FEWEST <= len(words) <= MOST and lower > 0.85 * len(letters) and plain


def collected(folder: Path) -> dict[str, list[list[str]]]:
    """Return the usable documents of each work, by collection."""
    found: dict[str, list[list[str]]] = {}
    for name in ("inaugural", "state_union"):
        with zipfile.ZipFile(folder / f"{name}.zip") as archive:
            members = sorted(each for each in archive.namelist() if each.endswith(".txt"))
            texts = [decoded(archive.read(each)) for each in members]
        works = [list(filter(usable, paragraphs(each))) for each in texts if each]
        found[name] = [work[1:] for work in works]  # the first is a heading and a salutation
    play = (folder / "tinyshakespeare.txt").read_text(encoding="utf-8")
    found["plays"] = [list(filter(usable, scenes(play)))]
    return found


def drawn(works: list[list[str]], room: float, rng: random.Random) -> list[str]:
    """Take documents in turn from every work, at random in each, until the room is full."""
    piles = [rng.sample(work, len(work)) for work in works if work]
    taken: list[str] = []
    while any(piles):
        for pile in piles:
            if not pile:
                continue
            text = pile.pop()
            room -= len(text.encode()) + 1
            if room < 0:
                return taken
            taken.append(text)
    return taken


def bundle(folder: Path) -> str:
    """Return the whole text, a document per line, works mixed."""
    rng = random.Random(SEED)
    found = collected(folder)
    documents = [
        each for name, part in SHARES.items() for each in drawn(found[name], part * BYTES, rng)
    ]
    documents = list(dict.fromkeys(documents))
    rng.shuffle(documents)
    return "\n".join(documents) + "\n"


if __name__ == "__main__":
    OUT.write_text(bundle(Path(sys.argv[1])), encoding="utf-8")
    print(f"{OUT}: {len(OUT.read_text(encoding='utf-8').splitlines())} documents")
