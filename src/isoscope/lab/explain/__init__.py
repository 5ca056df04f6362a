"""Why each site of a run is anisotropic."""

from isoscope.study.experiment import PLACE, Experiment, add

add(
    Experiment(
        "explain",
        """Print how much of the mean cosine is owed to which cause.

        In this order, always: sink tokens, a few dimensions, token frequency, position, and
        what is left, the mean that all rows share. Where causes overlap, the earlier one has
        it.
        """,
        spec_at="isoscope.lab.explain.spec:ExplainSpec",
        where_at=PLACE,
        examples=("isoscope explain runs/a", "isoscope explain runs/a -s rows --json"),
        noun="sites",
    ),
)
