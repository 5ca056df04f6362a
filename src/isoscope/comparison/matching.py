"""Which site of one run is held against which of the other: by name, or by relative depth."""

from collections.abc import Sequence

from isoscope.site import Site

MATCHES = ("name", "depth")


def matched(first: Sequence[str], second: Sequence[str], how: str) -> list[tuple[str, str]]:
    """Return pairs of sites, in the order of the first run."""
    if how == "name":
        return [(site, site) for site in first if site in set(second)]
    ours, theirs = _families(first), _families(second)
    layers: dict[str, str] = {}
    for family, sites in ours.items():
        if family in theirs:
            layers |= _by_depth(sites, theirs[family])
    numbered = {site for sites in ours.values() for site in sites.values()}
    pairs = [
        (site, layers[site] if site in numbered else site)
        for site in first
        if (site in layers) or (site not in numbered and site in set(second))
    ]
    return pairs


def _families(sites: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the sites that are layers, by family and number."""
    found: dict[str, dict[int, str]] = {}
    for name in sites:
        site = Site.parse(name)
        if site.layer is not None and site.head is None:
            found.setdefault(site.group, {})[site.layer] = name
    return found


def _by_depth(ours: dict[int, str], theirs: dict[int, str]) -> dict[str, str]:
    """Return for each layer of the shallower model the one of the other at the same depth."""
    shallow, deep = (ours, theirs) if len(ours) <= len(theirs) else (theirs, ours)
    top, bottom = max(max(shallow), 1), max(max(deep), 1)
    pairs: dict[str, str] = {}
    for number, site in shallow.items():
        near = min(deep, key=lambda other: (abs(other / bottom - number / top), other))
        pair = (site, deep[near]) if shallow is ours else (deep[near], site)
        pairs[pair[0]] = pair[1]
    return pairs
