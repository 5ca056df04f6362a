"""Properties worked out once, on first use, by whichever thread asks.

Like functools.cached_property, which in Python 3.11 holds one lock for all instances of a
class: two lanes with a block each would wait for each other's matrix products.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801  used as a decorator, as property is
    """A property whose value is kept in the instance once it is known."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make = make
        self.__doc__ = make.__doc__
        self.__isabstractmethod__ = getattr(make, "__isabstractmethod__", False)

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "lazy[T] | T":
        if instance is None:
            return self
        value = self.make(instance)
        instance.__dict__[self.name] = value  # found before this descriptor from now on
        return value
