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
Progress = Callable[[int, int | None], None]  # done, and in all where that is known
Say = Callable[[str], None]


def signature(
    spec: type[Runnable[object]],
    where: type[Part],
    result: object = inspect.Signature.empty,
) -> inspect.Signature:
    """Return the signature: arguments of the spec, then all options as keywords."""
    options = [*spec.options().values(), *named_options(where).values()]
    parameters = [_parameter(each) for each in options]
    parameters.sort(key=lambda each: each.kind)  # arguments have their place first
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in (("progress", "Progress | None"), ("say", "Say | None"))
    ]
    return inspect.Signature(parameters, return_annotation=result)


def function_of(spec: type[Runnable[R]], where: type[Part] = Execution) -> Callable[..., R]:
    """Return the Python function of a spec that has none of its own."""

    def function(*arguments: object, **options: object) -> R:
        return call(spec, arguments, options, where)

    function.__name__ = function.__qualname__ = spec.command.replace("-", "_")
    function.__module__ = spec.__module__
    function.__doc__ = spec.__doc__
    function.__signature__ = signature(spec, where, _result_of(spec))
    return function


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
    for name in bound.arguments:
        if name in values:
            raise TypeError(f"{spec.command}() got multiple values for argument {name!r}")
    notify = Notify(
        cast(Progress | None, given.pop("progress", None)),
        cast(Say | None, given.pop("say", None)),
    )
    places = named_options(where)
    refuse_unknown(given, {**spec.options(), **places})
    execution = execution_of({name: given.pop(name) for name in places if name in given})
    live: dict[str, object] = {}
    for name, option in spec.options().items():
        value = given.get(name)
        if _is_path(value):
            given[name] = os.fspath(value)
        elif option.about.live and value is not None and not isinstance(value, str):
            live[name], given[name] = value, None
    checked = spec.of(**given)
    for name, option in spec.options().items():
        if option.required and checked.value(name) is None and name not in live:
            raise TypeError(f"{spec.command}() missing a required argument: {name!r}")
    return run(checked, execution, live=live, notify=notify)


def execution_of(values: Mapping[str, object]) -> Execution:
    """Return where work is done, checked."""
    known = named_options(Execution)
    checked = {
        name: known[name].check(os.fspath(value) if _is_path(value) else value)
        for name, value in values.items()
    }
    return build(Execution, checked)


def _is_path(value: object) -> TypeGuard[os.PathLike[str]]:
    return isinstance(value, os.PathLike)


def _parameter(option: Option) -> inspect.Parameter:
    has_place = option.about.argument or option.about.positional
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
