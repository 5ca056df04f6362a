"""Being told of a module's passes, even by libraries that call its forward directly.

Hooks are run by calling the module; sentence-transformers calls `forward`, which runs none.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

from torch import nn

Before = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]
After = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], None]


@contextmanager
def told(
    module: nn.Module, *, before: Before | None = None, after: After | None = None
) -> Generator[None]:
    """Call `before` and `after` around every pass of a module until the block ends."""
    original = module.forward
    own = vars(module).get("forward")  # of one object, as accelerate sets it

    @wraps(original)
    def forward(*given: Any, **named: Any) -> Any:
        if before is not None:
            before(module, given, named)
        output = original(*given, **named)
        if after is not None:
            after(module, given, named, output)
        return output

    cast(Any, module).forward = forward
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            cast(Any, module).forward = own
