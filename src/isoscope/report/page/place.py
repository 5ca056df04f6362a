"""Where a site stands on the way through a model: in which part of it, and how deep."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

STREAM = "residual stream"
_SITE = re.compile(r"(enc\.|dec\.)?(resid|attn|mlp|q|k|v|stage|grad)\.(\d+)(?:\.(\d+))?")
_ENDS = {"embed": -1, "norm.in": 10**6, "norm.mid": 10**6 + 1, "norm.out": 10**6 + 2}
_STACKS = {"enc.": "encoder", "dec.": "decoder", "": ""}
_FAMILIES = {
    "attn": "attention output",
    "mlp": "MLP output",
    "q": "queries",
    "k": "keys",
    "v": "values",
    "stage": "stages",
    "grad": "gradients",
}


@dataclass(frozen=True)
class Place:
    """The part of a model a site belongs to, its label there, and its depth."""

    part: str
    label: str
    depth: tuple[int, int]

    @property
    def after_blocks(self) -> bool:
        """Whether it belongs to the final norm."""
        return self.depth[0] >= _ENDS["norm.in"]


def place_of(site: str) -> Place:
    """Return where a site stands.

    >>> place_of("resid.3")
    Place(part='residual stream', label='3', depth=(3, 0))
    >>> place_of("enc.norm.out").part
    'encoder stream'
    """
    found = _SITE.fullmatch(site)
    if found and len(found[3]) < 9:
        stack, family, layer, head = found.groups()
        label = layer if head is None else f"{layer}.{head}"
        depth = (int(layer), 0 if head is None else 1 + int(head[:9]))
        if family == "resid":
            return Place(_stream(stack), label, depth)
        return Place(
            " ".join(filter(None, (_STACKS[stack or ""], _FAMILIES[family]))), label, depth
        )
    start = site[:4] if site[:4] in _STACKS else ""
    if site[len(start) :] in _ENDS:
        end = site[len(start) :]
        return Place(_stream(start), end.removeprefix("norm."), (_ENDS[end], 0))
    return Place("other sites", site, (0, 0))


def ordered(sites: Iterable[str]) -> list[str]:
    """Return sites by part, and within each by depth; parts as they come first."""
    sites = list(dict.fromkeys(sites))
    parts = list(dict.fromkeys(place_of(site).part for site in sites))
    parts.sort(key=lambda part: part == "other sites")
    return sorted(sites, key=lambda s: (parts.index(place_of(s).part), place_of(s).depth))


def last_of_stream(sites: Iterable[str]) -> str | None:
    """Return where a model's vectors come out: the deepest site of its last stream."""
    streams = [site for site in ordered(sites) if place_of(site).part.endswith("stream")]
    if streams:
        return streams[-1]
    rest = [site for site in sites if not site.endswith(".weight")]
    return next(iter(rest), next(iter(sites), None))


def _stream(stack: str | None) -> str:
    name = _STACKS[stack or ""]
    return f"{name} stream" if name else STREAM
