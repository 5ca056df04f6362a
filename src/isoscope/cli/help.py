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
            records = [record for p in shown if (record := p.get_help_record(ctx))]
            if kind == "argument":
                records = [(name.partition(" <")[0], text) for name, text in records]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
