"""The arguments and flags of every command that loads a model."""

from typing import Annotated

import typer

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A folder, a GGUF file, or a name on the hub with @revision."
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(metavar="D", help="float32, bfloat16 or float16  [default: float32]"),
]
Device = Annotated[
    str, typer.Option(metavar="D", show_default=True, help="cpu, cuda, cuda:1, mps.")
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
]
TextColumn = Annotated[str | None, typer.Option(metavar="C", help="The column of texts.")]
Length = Annotated[
    int,
    typer.Option(min=2, metavar="N", show_default=True, help="Tokens a document is cut to."),
]
Batch = Annotated[
    int, typer.Option(min=1, metavar="N", show_default=True, help="Documents at once.")
]
