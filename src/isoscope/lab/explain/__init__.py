"""Why each site of a run is anisotropic."""

from isoscope.study.experiment import PLACE, Experiment, add

add(
    Experiment(
        "explain",
        """Print what the mean cosine of each site is owed to.

        By removal: what sink tokens and a few dimensions have of the mean cosine. By
        dependence: how much of the likeness of rows goes when their partners have another
        token frequency or position, and what all rows share. The two scales do not add up. Of a
        run of attention heads: the cosines within queries and keys, and that of their site.
        """,
        spec_at="isoscope.lab.explain.spec:ExplainSpec",
        where_at=PLACE,
        examples=("isoscope explain runs/a", "isoscope explain runs/a -s rows --json"),
        noun="sites",
    ),
)
