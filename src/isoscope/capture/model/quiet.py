"""Silence for the libraries that load models: no bars, no reports, all restored after."""

import io
import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import huggingface_hub.utils.logging as hub_logging
import transformers.utils.logging as transformers_logging


@contextmanager
def quiet() -> Generator[None]:
    """Keep transformers and the hub from writing anything while a model is loaded.

    Their bars have no common switch (GGUF conversion uses tqdm as it is), hence the
    redirection. Asking for the verbosity first makes both set up their handlers on the
    real stderr; otherwise they would keep ours for good.
    """
    before, hub_before = transformers_logging.get_verbosity(), hub_logging.get_verbosity()
    transformers_logging.set_verbosity(logging.CRITICAL)
    hub_logging.set_verbosity(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers_logging.set_verbosity(before)
        hub_logging.set_verbosity(hub_before)
