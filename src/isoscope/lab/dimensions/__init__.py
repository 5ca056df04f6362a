"""Which few dimensions carry the mean cosine of each site of a run."""

from isoscope.study.experiment import PLACE, Experiment, add

add(
    Experiment(
        "dimensions",
        """Print which dimensions carry the mean cosine of each site.

        Also the kurtosis of the first one (0 for a Gaussian), and r squared: how well the
        cosines without the top 1, 3 and 5 dimensions predict those of whole vectors.
        """,
        spec_at="isoscope.lab.dimensions.spec:DimensionsSpec",
        where_at=PLACE,
        examples=("isoscope dimensions runs/a", "isoscope dimensions runs/a -s rows --json"),
        noun="sites",
    ),
)
