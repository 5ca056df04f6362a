"""Sites: what is measured in a model, by name; the only place where such names are taken apart.

A site is a dotted name (ADR 10): `resid.3`, `enc.attn.0`, `norm.mid`, `q.3.11`, `head.3.11`,
`embed.weight`. Names of other people's modules are sites as well, so that every string parses
and prints as it was. In readings, runs and state files sites are strings.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Self

from isoscope.dataclass import dataclass

ENCODER, DECODER = "enc", "dec"
CROSS = "cross"  # attention of a decoder to its encoder
STACKS = ("", ENCODER, DECODER, CROSS)  # models with one stack have no name for it
HEADS = ("q", "k", "v")
HEAD = "head"  # a head of attention: its queries, keys and scores together
EMBED, UNEMBED = MATRICES = ("embed.weight", "unembed.weight")
PARTS = ("in", "mid", "out")  # of the final norm: before, within, after
POOLED = "pooled"
FAMILIES = (  # in the order of a model, as tables list them
    "embed", "resid", "stage", "attn", "mlp", "norm", HEAD, *HEADS, "grad", "gradw",
    "rows", POOLED, "task", *MATRICES,
)  # fmt: skip
OTHER = "other sites"
STREAM = "residual stream"

_REGIONS = {
    "resid": "stream",
    "attn": "attention output",
    "mlp": "MLP output",
    "q": "queries",
    "k": "keys",
    "v": "values",
    "head": "heads",
    "stage": "stages",
    "grad": "gradients",
}
_IN_WORDS = {"": "", ENCODER: "encoder", DECODER: "decoder", CROSS: "cross"}
_NUMBER = re.compile("0|[1-9][0-9]{0,7}")  # as `str` would print it, and small enough to draw
_AFTER_BLOCKS = 10**6  # deeper than any block


@dataclass(frozen=True, slots=True)
class Site:
    """One place in a model, taken apart.

    >>> Site.parse("enc.q.3.11")
    Site(family='q', layer=3, head=11, part='', stack='enc')
    >>> str(Site("norm", part="out", stack="dec"))
    'dec.norm.out'
    """

    family: str  # one of FAMILIES, or the name that somebody gave to a module
    layer: int | None = None  # counted from 0
    head: int | None = None
    part: str = ""  # of `norm`: in, mid, out; of `gradw`: the name of the parameter
    stack: str = ""  # one of STACKS

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the site of a name; `str` gives the same name back, whatever it is."""
        stack, rest = _take_stack(text)
        return cls(*_take_apart(rest), stack=stack)

    def __str__(self) -> str:
        names = f"{self.family}.{self.part}" if self.part else self.family
        numbers = [n for n in (self.layer, self.head) if n is not None]
        return prefix_of(self.stack) + ".".join([names, *map(str, numbers)])

    def __lt__(self, other: "Site") -> bool:
        return self.key < other.key

    @property
    def is_free(self) -> bool:
        """Whether somebody gave this name to a module: it belongs to no family."""
        return self.family not in FAMILIES

    @property
    def is_matrix(self) -> bool:
        """Whether rows are weights of tokens, which no document has anything to do with."""
        return self.family in MATRICES and self.layer is None

    @property
    def is_stream(self) -> bool:
        """Whether it lies on the way from the embeddings to the output, between parts."""
        return self.region.endswith(_REGIONS["resid"])

    @property
    def is_final_norm(self) -> bool:
        """Whether it is before, within or after the final norm."""
        return self.family == "norm" and self.part in PARTS

    @property
    def group(self) -> str:
        """The family with its stack: `enc.resid` for `enc.resid.3`, `norm` for `norm.mid`."""
        return prefix_of(self.stack) + self.family

    @property
    def key(self) -> tuple[bool, int, int, int, int, int, str]:
        """The order of a model, as tables show it: by stack, family, layer and head.

        Matrices come last. A site without a stack comes beside those of the encoder; heads of
        cross-attention come after those of the decoder.
        """
        family = len(FAMILIES) if self.is_free else FAMILIES.index(self.family)
        layer, head = (-1 if n is None else n for n in (self.layer, self.head))
        part = PARTS.index(self.part) if self.is_final_norm else -1
        side = {DECODER: 1, CROSS: 2}.get(self.stack, 0)
        return self.is_matrix, side, family, layer, head, part, str(self)

    @property
    def region(self) -> str:
        """The part of a model that a page shows along one axis.

        >>> Site.parse("enc.norm.out").region, Site.parse("q.3.11").region
        ('encoder stream', 'queries')
        """
        if self.layer is not None and self.family in _REGIONS:
            kind = _REGIONS[self.family]
        elif self._is_end:
            kind = _REGIONS["resid"]
        else:
            return OTHER
        if kind == _REGIONS["resid"] and not self.stack:
            return STREAM
        return f"{_IN_WORDS[self.stack]} {kind}".strip()

    @property
    def label(self) -> str:
        """What stands at an axis of its region: `3`, `3.11`, `embed`, `out`."""
        if self.region == OTHER:
            return str(self)
        numbers = [str(n) for n in (self.layer, self.head) if n is not None]
        return ".".join(numbers) or self.part or self.family

    @property
    def depth(self) -> tuple[int, int]:
        """The order within a region: embeddings, blocks and their heads, the final norm."""
        if self.region == OTHER:
            return (0, 0)
        if self._is_end:
            return (_AFTER_BLOCKS + PARTS.index(self.part) if self.part else -1, 0)
        return (self.layer or 0, 0 if self.head is None else 1 + self.head)

    @property
    def _is_end(self) -> bool:
        """Whether it is an end of a stream: before the first block, or after the last."""
        return self.layer is None and (self.family == "embed" or self.is_final_norm)

    def matches(self, selector: str) -> bool:
        """Whether a selector takes this site: a start of its name, with or without the stack.

        `resid` takes the stages of a convolutional network as well; `embed` the matrix too.

        >>> site = Site.parse("enc.resid.3")
        >>> [site.matches(s) for s in ("resid", "enc", "enc.resid.3", "resid.30", "dec.resid")]
        [True, True, True, False, False]
        """
        stack, rest = _take_stack(selector)
        if self.family == "stage" and rest == "resid":
            return stack in ("", self.stack)
        whole = str(self)
        names = (whole, whole.removeprefix(prefix_of(self.stack)))
        return any(name == selector or name.startswith(f"{selector}.") for name in names)


def key_sites(heads: Iterable[str], keys: Iterable[str]) -> dict[str, str]:
    """Return for each head the site of the keys that it reads.

    Where heads share keys, as many heads in a row read the same ones.

    >>> key_sites(["head.0.0", "head.0.1", "head.1.0"], ["k.0.0", "k.1.0"])
    {'head.0.0': 'k.0.0', 'head.0.1': 'k.0.0', 'head.1.0': 'k.1.0'}
    """
    layers: dict[tuple[str, int | None], tuple[list[str], list[str]]] = {}
    for number, names in enumerate((heads, keys)):
        for site in sorted(map(Site.parse, names), key=lambda each: each.depth):
            here = layers.setdefault((site.stack, site.layer), ([], []))
            here[number].append(str(site))
    return {
        head: own[place * len(own) // len(these)]
        for these, own in layers.values()
        for place, head in enumerate(these)
        if own
    }


def prefix_of(stack: str) -> str:
    """Return what stands before the names of a stack's sites: `enc.`, `dec.` or nothing."""
    return f"{stack}." if stack else ""


def is_matrix(site: str) -> bool:
    """Whether the site of this name is a matrix of weights."""
    return Site.parse(site).is_matrix


def is_layer(site: str) -> bool:
    """Whether the site of this name is the residual stream after one block."""
    return Site.parse(site).layer is not None and Site.parse(site).group == "resid"


def order_sites(names: Iterable[str]) -> list[str]:
    """Return names by region, and within each by depth; regions as they come first.

    What belongs to no region comes last.
    """
    sites = [Site.parse(name) for name in dict.fromkeys(names)]
    regions = order_regions(site.region for site in sites)
    sites.sort(key=lambda site: (regions.index(site.region), site.depth))
    return [str(site) for site in sites]


def order_regions(regions: Iterable[str]) -> list[str]:
    """Return regions once each, as they come, and other sites last."""
    return sorted(dict.fromkeys(regions), key=lambda region: region == OTHER)


def last_of_stream(names: Iterable[str]) -> str | None:
    """Return where the vectors of a model come out: the deepest site of its last stream."""
    names = list(names)
    streams = [name for name in order_sites(names) if Site.parse(name).is_stream]
    if streams:
        return streams[-1]
    return next((name for name in names if not is_matrix(name)), next(iter(names), None))


def output_of(names: Iterable[str]) -> str | None:
    """Return the site of what users take from a model: pooled vectors, else its last stream."""
    names = list(names)
    return POOLED if POOLED in names else last_of_stream(names)


def _take_stack(text: str) -> tuple[str, str]:
    """Return the stack, and the name without it."""
    stack = next((each for each in STACKS if each and text.startswith(f"{each}.")), "")
    return stack, text.removeprefix(prefix_of(stack))


@lru_cache(maxsize=1 << 14)  # a listener asks at every site of every batch
def _take_apart(name: str) -> tuple[str, int | None, int | None, str]:
    """Return family, layer, head and part of a name without its stack."""
    first, _, rest = name.partition(".")
    if (first == "norm" and rest in PARTS) or (first == "gradw" and rest):
        return first, None, None, rest
    words = name.split(".")
    numbers: list[int] = []
    while len(words) > 1 and _NUMBER.fullmatch(words[-1]):
        numbers.insert(0, int(words.pop()))
    family = ".".join(words)
    free = family not in FAMILIES
    # encoder.layer.3 is a layer; of h.3.mlp.0 and h.3.0 nobody can say which number is
    if len(numbers) > (1 if free else 2) or (free and any(map(_NUMBER.fullmatch, words))):
        return name, None, None, ""
    layer, head = (*numbers, None, None)[:2]
    return family, layer, head, ""
