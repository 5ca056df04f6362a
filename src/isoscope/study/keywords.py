"""A spec as a Python function: real signatures, and keywords checked by the spec."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, ForwardRef, TypeVar, cast, get_args, get_origin

from isoscope.engine import Notify, Status
from isoscope.study.experiment import python_name
from isoscope.study.option import (
    Option,
    Part,
    build,
    is_list,
    is_path,
    is_tuple,
    named_options,
)
from isoscope.study.run import Runnable, run
from isoscope.study.spec import Execution, refuse_unknown

R = TypeVar("R")
Progress = Callable[[int, int | None], None]  # done, and in all where that is known
Say = Callable[[str], None]
Watch = Callable[[Status], None]  # units, failures, and what each worker does
CALLBACKS = {"progress": "Progress", "say": "Say", "status": "Watch"}


def signature(
    spec: type[Runnable[object]],
    where: type[Part],
    result: object = inspect.Signature.empty,
) -> inspect.Signature:
    """Return the signature: arguments of the spec, then all options as keywords."""
    options = [*spec.options().values(), *named_options(where).values()]
    parameters = sorted(map(_parameter, options), key=lambda each: each.kind)
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in ((name, f"{kind} | None") for name, kind in CALLBACKS.items())
    ]
    return inspect.Signature(parameters, return_annotation=result)


def function_of(spec: type[Runnable[R]], where: type[Part] = Execution) -> Callable[..., R]:
    """Return the Python function of a spec that has none of its own."""

    def function(*arguments: object, **options: object) -> R:
        return call(spec, arguments, options, where)

    function.__name__ = function.__qualname__ = python_name(spec.command)
    function.__module__ = spec.__module__
    function.__doc__ = spec.__doc__
    function.__signature__ = signature(spec, where, _result_of(spec))
    return function


def _result_of(spec: type[Runnable[object]]) -> object:
    """Return what running a spec gives, as its base class names it; as text where quoted."""
    bases = cast(tuple[object, ...], getattr(spec, "__orig_bases__", ()))
    results = (
        get_args(each)[0]
        for each in bases
        if isinstance(kind := get_origin(each), type) and issubclass(kind, Runnable)
    )
    result: object = next(results, inspect.Signature.empty)
    return result.__forward_arg__ if isinstance(result, ForwardRef) else result


def call(
    spec: type[Runnable[R]],
    arguments: tuple[object, ...],
    values: Mapping[str, object],
    where: type[Part] = Execution,
) -> R:
    """Run a spec with the arguments and keywords of a Python function."""
    bound = signature(spec, where).bind_partial(*arguments)
    settings: dict[str, object] = {**bound.arguments, **values}
    for name in bound.arguments:
        if name in values:
            raise TypeError(f"{spec.command}() got multiple values for argument {name!r}")
    notify = Notify(
        cast(Progress | None, settings.pop("progress", None)),
        cast(Say | None, settings.pop("say", None)),
        cast(Watch | None, settings.pop("status", None)),
    )
    places = named_options(where)
    refuse_unknown(settings, {**spec.options(), **places})
    execution = execution_of({name: settings.pop(name) for name in places if name in settings})
    live: dict[str, object] = {}
    for name, option in spec.options().items():
        value = settings.get(name)
        several = option.many and (is_list(value) or is_tuple(value))
        if is_path(value):
            settings[name] = value if option.many else os.fspath(value)
        elif several:
            continue  # names, one by one
        elif option.about.live and value is not None and not isinstance(value, str):
            live[name], settings[name] = value, None
    checked = spec.of(**settings)
    for name, option in spec.options().items():
        if option.required and checked.value(name) is None and name not in live:
            raise TypeError(f"{spec.command}() missing a required argument: {name!r}")
    return run(checked, execution, live=live, notify=notify)


def execution_of(values: Mapping[str, object]) -> Execution:
    """Return where work is done, checked."""
    known = named_options(Execution)
    checked = {
        name: known[name].check(os.fspath(value) if is_path(value) else value)
        for name, value in values.items()
    }
    return build(Execution, checked)


def _parameter(option: Option) -> inspect.Parameter:
    has_place = option.about.argument or option.about.positional
    kinds = inspect.Parameter
    return inspect.Parameter(
        option.name,
        kinds.POSITIONAL_OR_KEYWORD if has_place else kinds.KEYWORD_ONLY,
        default=kinds.empty if option.required else option.default,
        annotation=_accepted_type(option),
    )


def _accepted_type(option: Option) -> object:
    """Return the type of what Python may pass: more than what the spec holds."""
    if option.about.live:
        return Any
    if option.about.path and not option.many:
        return option.type | os.PathLike[str]
    if option.many:
        one = option.plain | int if option.about.numbers else option.plain
        one = one | os.PathLike[str] if option.about.path else one
        several = one | Sequence[one]
        return several | None if NoneType in get_args(option.type) else several
    return option.type
