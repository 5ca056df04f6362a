"""What is derived from specs and modules: the pages of options and files, and the type stub.

Signatures that follow from specs are made when the program runs, and a type checker does not
run it. `python -m isoscope.cli.derive stub` prints the stub, `... options` and `... files`
the pages; `make derive` writes all three.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import wrap
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import isoscope
from isoscope.cli.command import bounds_text, default_text
from isoscope.study import keywords

if TYPE_CHECKING:
    from isoscope.study.experiment import Experiment
    from isoscope.study.option import Option

KINDS: dict[object, str] = {int: "whole number", float: "number", str: "text", bool: "switch"}
PAGE_HEAD = """# Options

<!-- Written by `make derive`, from the specs: edit those. -->

All options of the commands that compute something. Flags without the hyphens in front are
the keys of a `--config` file; keywords are those of the Python function of the same name. Every
value is checked by the same spec, whichever way it comes.
"""
FILES_HEAD = """# Every file

<!-- Written by `make derive`, from the first sentence of each module: edit those. -->

The modules of `src/isoscope`, by folder.
[How it works](how-it-works.md) says what the folders are for.
"""
STUB_HEAD = '''"""Measure, explain and control the anisotropy of Transformer representations."""

# Written by `make derive`, from the specs: edit those.
'''


def page() -> str:
    """Return docs/options.md."""
    from isoscope.study.experiment import built_in

    return PAGE_HEAD + "".join(f"\n{_section(each)}" for each in built_in())


def _section(experiment: "Experiment") -> str:
    from isoscope.study.option import named_options

    options = [*experiment.spec.options().values(), *named_options(experiment.where).values()]
    options.sort(key=lambda option: not option.about.argument)
    head = ("flag", "keyword", "type", "default", "bounds", "help")
    lines = [_row(head), _row(["---" for _ in head]), *map(_option_row, options)]
    return f"## {experiment.name}\n\n" + "".join(f"{line}\n" for line in lines)


def _option_row(option: "Option") -> str:
    names = option.about.flag.replace("/", ", ") or f"--{option.flag}"
    flags = option.about.metavar
    if not option.about.argument:
        flags = f"{names} {flags}".rstrip()
    words = option.words
    kind = ", ".join(map(str, words)) if words else KINDS.get(option.plain, "text")
    kind = f"{kind}; several" if option.many else kind
    none = NoneType in get_args(option.type) and option.default is not None
    return _row(
        [
            f"`{flags}`",
            f"`{option.name}`",
            f"{kind}; or none" if none and not option.required else kind,
            "*required*" if option.required else default_text(option),
            bounds_text(option).replace("<", "&lt;").replace(">", "&gt;"),
            option.about.help,
        ]
    )


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def files() -> str:
    """Return docs/files.md: every module with the first sentence of its docstring."""
    root, sections = Path(isoscope.__path__[0]), dict[str, str]()
    for path in sorted(root.rglob("*.py")):
        folder = path.relative_to(root).parent.as_posix()
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        sentence = text.partition("\n\n")[0].replace("\n", " ")
        sections.setdefault(folder, f"\n## {folder.replace('.', 'isoscope')}\n\n")
        if sentence:
            sections[folder] += f"- `{path.name}`: {sentence}\n"
    return FILES_HEAD + "".join(sections.values())


def stub() -> str:
    """Return src/isoscope/__init__.pyi."""
    names = Names()
    functions: list[str] = []
    for name in isoscope.__all__:
        function = getattr(isoscope, name)
        if hasattr(function, "__signature__"):
            functions.append(_definition(name, function, names))
        else:
            names.add("isoscope.api", name)
    listed = "".join(f'    "{name}",\n' for name in isoscope.__all__)
    return f"{STUB_HEAD}\n{names.imports()}\n__all__ = [\n{listed}]\n\n" + "\n".join(functions)


class Names:
    """The names that a stub imports, and types spelt with them."""

    def __init__(self) -> None:
        self._from: dict[str, str] = {}  # names, and the modules they come from

    def add(self, module: str, name: str) -> str:
        """Import a name, once; return it."""
        if module != "builtins":
            self._from.setdefault(name, module)
        return name

    def imports(self) -> str:
        """Return the import statements, those of the standard library first."""
        ours, theirs = "", ""
        for module in sorted(set(self._from.values())):
            names = sorted(name for name, where in self._from.items() if where == module)
            line = f"from {module} import {', '.join(names)}\n"
            if len(line) > 97:
                inside = "".join(f"    {name},\n" for name in names)
                line = f"from {module} import (\n{inside})\n"
            ours, theirs = (
                (ours + line, theirs) if "isoscope" in module else (ours, theirs + line)
            )
        return f"{theirs}\n{ours}"

    def spell(self, kind: Any) -> str:
        """Return a type as source, and import what it needs."""
        origin, inside = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            members = sorted(inside, key=lambda each: each is NoneType)
            return " | ".join(map(self.spell, members))
        if origin is Literal:
            return f"{self.add('typing', 'Literal')}[{', '.join(map(_quote, inside))}]"
        if kind is Any:
            return self.add("typing", "Any")
        if kind is NoneType:
            return "None"
        name = self.add((origin or kind).__module__, (origin or kind).__name__)
        return f"{name}[{', '.join(map(self.spell, inside))}]" if inside else name

    def parse(self, text: str, function: Callable[..., Any]) -> str:
        """Return a type that the source of a function's module spells already."""
        source = Path(str(sys.modules[function.__module__].__file__))
        imported = {
            alias.asname or alias.name: node.module
            for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        for word in re.findall(r"[A-Z]\w+", text):
            if word != "None":
                self.add(imported.get(word, function.__module__), word)
        return text


def _definition(name: str, function: Callable[..., Any], names: Names) -> str:
    """Return the definition of a function without its body."""
    signature = inspect.signature(function)
    lines: list[str] = []
    for each in signature.parameters.values():
        if each.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in lines:
            lines.append("*")
        default = (
            "" if each.default is inspect.Parameter.empty else f" = {_quote(each.default)}"
        )
        kind = each.annotation
        spelt = names.parse(kind, keywords.call) if isinstance(kind, str) else names.spell(kind)
        lines.append(f"{each.name}: {spelt}{default}")
    kind = signature.return_annotation
    result = names.parse(kind, function) if isinstance(kind, str) else names.spell(kind)
    body = "".join(f"    {line},\n" for line in lines)
    return f"def {name}(\n{body}) -> {result}:\n    {_first_line(function)}\n"


def _first_line(function: Callable[..., Any]) -> str:
    lines = wrap('"""' + (inspect.getdoc(function) or "").partition("\n")[0], 89)
    lines += [""] if lines[1:] else []
    return "\n    ".join(lines) + '"""'


def _quote(value: Any) -> str:
    return repr(value).replace("'", '"')


if __name__ == "__main__":
    sys.stdout.write({"stub": stub, "options": page, "files": files}[sys.argv[1]]())
