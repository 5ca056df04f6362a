"""--config FILE.yaml: flags from a file; those on the command line win."""

from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, TypeAlias, cast, get_args

import click

from isoscope.cli.flags import PATH
from isoscope.errors import ConfigError

if TYPE_CHECKING:
    from isoscope.study.option import Option

# What the keys and values of a YAML file can be.
Yaml: TypeAlias = "bool | int | float | str | list[Yaml] | dict[Yaml, Yaml] | None"

LARGEST = 2**20  # bytes; a file beyond that is no config
NOT_IN_FILES = {"config", "help"}
NULLS = "isoscope.nulls"  # where a context holds the options that a file sets to none


def take_settings(context: click.Context, _flag: click.Parameter, path: Path | None) -> None:
    """Make the values of a file the defaults of the command that is being parsed."""
    if path is None or context.resilient_parsing:
        return
    parameters = _by_flag(context)
    options: dict[str, Option] = getattr(context.command, "options", {})
    values: dict[str, bool | str | list[str]] = {}
    nulls: list[str] = []
    for key, value in _section(read(path), context).items():
        name = str(key).replace("_", "-")
        if name not in parameters:
            raise _unknown(path, str(key), parameters)
        parameter = parameters[name]
        known = str(parameter.name)
        option = options.get(known)
        if value is None:
            # None is a value of some options, and another one than their default.
            if option is not None and option.default is not None:
                nulls += [known] if NoneType in get_args(option.type) else []
            continue
        if option is not None and option.about.commas and isinstance(value, list):
            value = ",".join(_text(path, name, each) for each in value)
        values[known] = _type_value(path, name, value, parameter)
    context.default_map = values
    context.meta[NULLS] = nulls


config_file = click.option(
    "--config",
    metavar="FILE",
    type=PATH,
    callback=take_settings,
    is_eager=True,
    expose_value=False,
    help="Read flags from a YAML file; those typed here win.",
)


def read(path: Path) -> dict[Yaml, Yaml]:
    """Return the keys and values of a YAML file; only plain values, never objects."""
    import yaml

    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
        content = cast(Yaml, yaml.safe_load(path.read_bytes()))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        why = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise ConfigError(
            f"cannot read the config {str(path)!r}: {why}",
            hint="a config is a YAML file of flags, such as `seed: 1`, one per line",
            slug="config-file",
        ) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(
            f"expected flags and values in {str(path)!r}, got a {type(content).__name__}",
            hint="write one flag per line, such as `seed: 1`",
            slug="config-file",
        )
    return content


def _by_flag(context: click.Context) -> dict[str, click.Parameter]:
    """Return the parameters by the name a user types, without the hyphens in front."""
    flags = {
        option.lstrip("-").replace("_", "-"): parameter
        for parameter in context.command.params
        for option in parameter.opts
        if option.startswith("--") or not option.startswith("-")  # no short ones
    }
    return {name: flags[name] for name in flags if name not in NOT_IN_FILES}


def _section(content: dict[Yaml, Yaml], context: click.Context) -> dict[Yaml, Yaml]:
    """Return the flags of this command: at the top, under its name, or both."""
    group = context.parent.command if context.parent else None
    commands = set(getattr(group, "commands", ())) | {context.command.name}
    flags: dict[Yaml, Yaml] = {}
    own: dict[Yaml, Yaml] = {}
    for key, value in content.items():
        if key in commands and isinstance(value, dict):
            own = value if key == context.command.name else own
        else:
            flags[key] = value
    return flags | own


def _type_value(
    path: Path, name: str, value: Yaml, parameter: click.Parameter
) -> bool | str | list[str]:
    """Return the value as if it had been typed: text, a list of texts, or a switch."""
    if getattr(parameter, "is_flag", False):
        if isinstance(value, bool):
            return value
        raise _wrong_kind(path, name, "true or false", value)
    if getattr(parameter, "multiple", False) or parameter.nargs == -1:
        values = value if isinstance(value, list) else [value]
        return [_text(path, name, each) for each in values]
    return _text(path, name, value)


def _text(path: Path, name: str, value: Yaml) -> str:
    if isinstance(value, list | dict | bool | set | None.__class__):
        raise _wrong_kind(path, name, "a name or a number", value)
    return str(value)


def _wrong_kind(path: Path, name: str, expected: str, value: Yaml) -> ConfigError:
    return ConfigError(
        f"expected {expected} for {name!r} in {str(path)!r}, got {value!r}",
        hint=f"correct the line that begins with `{name}:`",
        slug="config-value",
    )


def _unknown(path: Path, key: str, known: Iterable[str]) -> ConfigError:
    from isoscope.registry import unknown

    error = unknown("setting", key, sorted(known))
    return ConfigError(
        f"{error.problem}, in {str(path)!r}", hint=error.hint, slug="config-unknown"
    )
