"""Why each site of a run is anisotropic."""

from isoscope.study.experiment import PLACE, Experiment, add

add(
    Experiment(
        "explain",
        """Print how much of the mean cosine each cause accounts for.

        Always in this order: sink tokens, a few dimensions, token frequency, position, and the
        rest, the mean that all rows share. Where causes overlap, the earlier one gets the
        share.
        """,
        spec_at="isoscope.lab.explain.spec:ExplainSpec",
        where_at=PLACE,
        examples=("isoscope explain runs/a", "isoscope explain runs/a -s rows --json"),
        noun="sites",
    ),
)
