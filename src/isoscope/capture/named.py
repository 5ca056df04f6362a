"""Taps by name: any module of any model, for those whose blocks no rule would find."""

from collections.abc import Mapping, Sequence

from torch import nn

from isoscope.capture.tap import Tap, by_rows
from isoscope.registry import unknown


def named_taps(model: nn.Module, modules: Mapping[str, str] | Sequence[str]) -> list[Tap]:
    """Return taps on the outputs of modules: names, or sites with names.

    Every call is heard. One vector, a sequence of vectors or a map of them per example
    will do; they arrive as (batch, positions, width).
    """
    sites = modules if isinstance(modules, Mapping) else {name: name for name in modules}
    known = [name for name, _ in model.named_modules() if name]
    for name in sites.values():
        if name not in known:
            raise unknown("module", name, known)
    return [Tap(site, name, call=None, through=by_rows) for site, name in sites.items()]
