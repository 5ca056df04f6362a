"""The feature extractor or image processor of a model that hears or sees."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from isoscope.capture.model.loaded import Takes
from isoscope.capture.model.quiet import quiet

SETTINGS = ("preprocessor_config.json", "processor_config.json")


def processor_of(
    folder: Path, kind: Takes, *, trust: bool, say: Callable[[str], None]
) -> Any | None:
    """Return what turns audio or images into inputs; None for text and where it is missing."""
    if kind == "text" or not any((folder / name).is_file() for name in SETTINGS):
        return None
    from transformers import AutoFeatureExtractor, AutoImageProcessor

    auto: Any = AutoImageProcessor if kind == "image" else AutoFeatureExtractor
    try:
        with quiet():
            return auto.from_pretrained(folder, local_files_only=True, trust_remote_code=trust)
    except Exception as error:  # each processor class fails in its own way
        reason = str(error).strip().split("\n")[0]
        say(f"warning: no processor of {kind} can be made of {folder}: {reason}")
        return None
