"""Which few dimensions carry the mean cosine of each site of a run."""

from isoscope.study.experiment import PLACE, Experiment, add

add(
    Experiment(
        "dimensions",
        """Print which dimensions carry the mean cosine of each site.

        With the kurtosis of the first (0 for a Gaussian), and r squared: how much of the
        cosines of whole vectors is left when the top 1, 3 and 5 dimensions are removed.
        """,
        spec_at="isoscope.lab.dimensions.spec:DimensionsSpec",
        where_at=PLACE,
        examples=("isoscope dimensions runs/a", "isoscope dimensions runs/a -s rows --json"),
        noun="sites",
    ),
)
