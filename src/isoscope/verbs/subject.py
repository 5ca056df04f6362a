"""The model that a verb is about: one that is named is loaded, any other taken as it is."""

import os
from typing import Any


def subject(model: Any, **given: Any) -> Any:
    """Return what experiments take: `given` goes to the loader of a path or hub name."""
    if isinstance(model, str | os.PathLike):
        from isoscope.verbs.model import opened

        return opened(model, **given)
    from isoscope.study.model import subject_of

    return subject_of(model)
