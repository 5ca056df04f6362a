"""A spec as a Python function: real signatures, and keywords checked by the spec."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, ForwardRef, TypeGuard, TypeVar, cast, get_args, get_origin

from isoscope.engine import Notify
from isoscope.study.option import Option, Part, build, named_options
from isoscope.study.run import Runnable, run
from isoscope.study.spec import Execution, refuse_unknown

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., object])
Progress = Callable[[int, int | None], None]  # done, and in all where that is known
Say = Callable[[str], None]


def keywords(spec: type[Runnable[object]], where: type[Part] = Execution) -> Callable[[F], F]:
    """Give a function the signature of a spec and of where it runs."""

    def decorate(function: F) -> F:
        function.__signature__ = signature(spec, where, function)
        return function

    return decorate


def signature(
    spec: type[Runnable[object]],
    where: type[Part],
    function: Callable[..., object] | None = None,
) -> inspect.Signature:
    """Return the signature: arguments of the spec, then all options as keywords."""
    spec_options = list(spec.options().values())
    options = [each for each in spec_options if _has_place(each)]
    parameters = [_parameter(each, has_place=True) for each in options]
    rest = [each for each in spec_options if not _has_place(each)]
    rest += list(named_options(where).values())
    parameters += [_parameter(each, has_place=False) for each in rest]
    for name, kind in (("progress", "Progress | None"), ("say", "Say | None")):
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
            )
        )
    result: object = inspect.Signature.empty
    if function is not None:
        result = cast(object, function.__annotations__.get("return", result))
    return inspect.Signature(parameters, return_annotation=result)


def function_of(spec: type[Runnable[R]], where: type[Part] = Execution) -> Callable[..., R]:
    """Return the Python function of a spec that has none of its own."""

    def function(*arguments: object, **options: object) -> R:
        return call(spec, arguments, options, where)

    function.__name__ = function.__qualname__ = spec.command.replace("-", "_")
    function.__module__ = spec.__module__
    function.__doc__ = spec.__doc__
    function.__annotations__["return"] = _result_of(spec)
    return keywords(spec, where)(function)


def _result_of(spec: type[Runnable[object]]) -> object:
    """Return what running a spec gives, as its base class names it; as text where quoted."""
    bases = cast(tuple[object, ...], getattr(spec, "__orig_bases__", ()))
    results = [get_args(each)[0] for each in bases if get_origin(each) is Runnable]
    result: object = results[0] if results else inspect.Signature.empty
    return result.__forward_arg__ if isinstance(result, ForwardRef) else result


def call(
    spec: type[Runnable[R]],
    arguments: tuple[object, ...],
    values: Mapping[str, object],
    where: type[Part] = Execution,
) -> R:
    """Run a spec with the arguments and keywords of a Python function."""
    bound = signature(spec, where).bind_partial(*arguments)
    given: dict[str, object] = {**bound.arguments, **values}
    if set(bound.arguments) & set(values):
        twice = next(name for name in bound.arguments if name in values)
        raise TypeError(f"{spec.command}() got multiple values for argument {twice!r}")
    progress = cast(Progress | None, given.pop("progress", None))
    notify = Notify(progress, cast(Say | None, given.pop("say", None)))
    places = named_options(where)
    refuse_unknown(given, {**spec.options(), **places})
    chosen = {name: given.pop(name) for name in places if name in given}
    execution = execution_of(chosen)
    live: dict[str, object] = {}
    for name, option in spec.options().items():
        value = given.get(name)
        if _is_path(value):
            given[name] = os.fspath(value)
        elif option.about.live and value is not None and not isinstance(value, str):
            live[name], given[name] = value, None
    checked = spec.of(**given)
    refuse_missing(checked, live)
    return run(checked, execution, live=live, notify=notify)


def execution_of(values: Mapping[str, object]) -> Execution:
    """Return where work is done, checked."""
    known = named_options(Execution)
    plain = {
        name: os.fspath(value) if _is_path(value) else value for name, value in values.items()
    }
    return build(Execution, {name: known[name].check(value) for name, value in plain.items()})


def refuse_missing(spec: Runnable[object], live: Mapping[str, object]) -> None:
    """Raise where an argument without a default was not given."""
    for name, option in spec.options().items():
        if option.required and spec.value(name) is None and name not in live:
            raise TypeError(f"{spec.command}() missing a required argument: {name!r}")


def _has_place(option: Option) -> bool:
    return option.about.argument or option.about.positional


def _is_path(value: object) -> TypeGuard[os.PathLike[str]]:
    return isinstance(value, os.PathLike)


def _parameter(option: Option, *, has_place: bool) -> inspect.Parameter:
    by_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    kind = by_place if has_place else by_name
    default = inspect.Parameter.empty if option.required else option.default
    return inspect.Parameter(
        option.name, kind, default=default, annotation=_accepted_type(option)
    )


def _accepted_type(option: Option) -> object:
    """Return the type of what Python may pass: more than what the spec holds."""
    if option.about.live:
        return Any
    if option.about.path:
        return option.type | os.PathLike[str]
    if option.many:
        one = option.plain | int if option.about.numbers else option.plain
        several = one | Sequence[one]
        return several | None if NoneType in get_args(option.type) else several
    return option.type
