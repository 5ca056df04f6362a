"""Silence for the libraries that load models: no bars, no reports, all restored after."""

import io
import logging
import warnings
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from threading import Lock

import huggingface_hub.utils.logging as hub_logging
import transformers.utils.logging as transformers_logging

_lock = Lock()
_inside = 0  # how many threads are quiet now
_restore = ExitStack()  # what the last of them undoes


@contextmanager
def quiet() -> Generator[None]:
    """Keep transformers and the hub from writing anything while a model is loaded.

    Streams belong to the process, not to a thread. Of threads that are quiet at the same
    time, such as one that loads the next checkpoint, the first redirects and the last
    restores: had each restored what it found, the streams would stay redirected for good.
    """
    global _inside
    with _lock:
        if not _inside:
            _silence(_restore)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _restore.close()


def _silence(stack: ExitStack) -> None:
    """Silence the libraries, until the stack is closed.

    Their bars have no common switch (GGUF conversion uses tqdm as it is), hence the
    redirection. Asking for the verbosity first makes both set up their handlers on the
    real stderr; otherwise they would keep ours for good.
    """
    for each in (transformers_logging, hub_logging):
        stack.callback(each.set_verbosity, each.get_verbosity())
        each.set_verbosity(logging.CRITICAL)
    stack.enter_context(warnings.catch_warnings())
    stack.enter_context(redirect_stdout(io.StringIO()))
    stack.enter_context(redirect_stderr(io.StringIO()))
    warnings.simplefilter("ignore")
