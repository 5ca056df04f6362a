"""isoscope help: what an error means, or the help page of a command."""

import re
from json import dumps
from pathlib import Path

import click

from isoscope.cli.flags import as_json
from isoscope.registry import unknown

EXAMPLES = {
    "help": (
        "isoscope help unknown-measure",
        "isoscope help unknown-measure --json",
        "isoscope help measure",
    ),
}
# In a wheel the page lies beside this file, in a checkout among the documentation.
PLACES = (
    Path(__file__).with_name("errors.md"),
    Path(__file__).parents[3] / "docs" / "errors.md",
)


@click.argument("topic", metavar="TOPIC", help="The last word of an error, or a command.")
@as_json
@click.pass_context
def explain_topic(context: click.Context, topic: str, style: str) -> None:
    """Explain an error, or print the help page of a command."""
    commands = context.find_root().command
    assert isinstance(commands, click.Group)
    sections = error_sections()
    if topic in sections:
        text = sections[topic]
    elif (command := commands.get_command(context, topic)) is not None:
        parent = context.parent
        with click.Context(command, info_name=topic, parent=parent) as own:
            text = command.get_help(own)
    else:
        raise unknown("topic", topic, (*sections, *commands.list_commands(context)))
    click.echo(dumps({"topic": topic, "text": text}) if style else text)


def error_sections() -> dict[str, str]:
    """Return what is written about each error: symptom, cause and fix."""
    page = next(path for path in PLACES if path.is_file()).read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)[1:]
    return {slug: plain_text(text) for slug, text in zip(parts[::2], parts[1::2], strict=True)}


def plain_text(markdown: str) -> str:
    """Return a section without the marks of Markdown.

    >>> plain_text("**Fix** Look at [start](start.md), or `--help`.")
    'Fix: Look at start (docs/start.md), or --help.'
    """
    text = re.sub(r"^\*\*(\w+)\*\*", r"\1:", markdown.strip(), flags=re.MULTILINE)
    text = re.sub(r"\[([^]]+)\]\((?!http)([^)]+)\)", r"\1 (docs/\2)", text)
    return text.replace("`", "")
