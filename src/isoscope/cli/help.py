"""Help pages in plain words: no types in angle brackets, no braces."""

from typing import Any

from typer.core import TyperCommand


class PlainCommand(TyperCommand):
    """A command whose help shows arguments as a user types them."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line after the command's name."""
        return [
            piece.replace("{", "").replace("}", "")
            for piece in super().collect_usage_pieces(ctx)
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            shown = [p for p in self.get_params(ctx) if p.param_type_name == kind]
            records = [record for each in shown if (record := self.record(each, ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def record(self, parameter: Any, ctx: Any) -> tuple[str, str] | None:
        """Return the names and the help of a parameter; None where it is hidden."""
        found = parameter.get_help_record(ctx)
        if found is None or parameter.param_type_name != "argument":
            return found
        return found[0].partition(" <")[0], found[1]
