"""How isotropic the embedding matrices of a model are."""

from isoscope.study.experiment import PLACE, Experiment, add

add(
    Experiment(
        "matrices",
        """Print I(W) of the embedding matrices of MODEL.

        Of the rows as they are and about their mean, over both signs of every eigenvector. I(W)
        depends on the scale of W: --against-random adds what rows of these norms would read.
        Where input and output are one matrix, it is measured once.
        """,
        spec_at="isoscope.lab.matrices.spec:MatricesSpec",
        where_at=PLACE,
        examples=(
            "isoscope matrices models/minilm",
            "isoscope matrices models/minilm --as-published --json",
        ),
        noun="matrices",
        first="loading model",
        section_at="isoscope.lab.matrices.section:SECTION",
    ),
)
