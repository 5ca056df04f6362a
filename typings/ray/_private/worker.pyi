"""Where Ray prints remarks on dead processes."""

from collections.abc import Callable

print_to_stdstream: Callable[..., None]
