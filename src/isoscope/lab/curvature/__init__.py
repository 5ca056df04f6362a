"""Curvature visibility: what frequency-biased sampling leaves of a manifold's curvature."""

from isoscope.study.experiment import Experiment, add

add(
    Experiment(
        "curvature",
        """Shrink neighbourhoods on manifolds of known curvature.

        Tangent and normal energy of points of a parabola, a paraboloid and a sphere as the
        sampled radius shrinks, the normal share of gradients, and what is left of curvature
        where frequent types have smaller neighbourhoods, all beside closed forms. With a
        MODEL, tangent and normal variance of the neighbourhoods of its token types against
        frequency instead, with intervals over documents.
        """,
        spec_at="isoscope.lab.curvature.spec:CurvatureSpec",
        examples=(
            "isoscope curvature --draws 5 --samples 1000 -o runs/curvature",
            "isoscope curvature --manifolds sphere --dimension 8 --draws 3 --json",
            "isoscope curvature models/minilm corpus.txt --occurrences 16 -o runs/types",
        ),
        noun="draws",
        section_at="isoscope.lab.curvature.section:SECTION",
        exhibit_at="isoscope.lab.curvature.section:draw_curvature",
    ),
)
