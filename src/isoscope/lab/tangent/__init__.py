"""Gradients and tangents: do gradients feed the directions that are already large?"""

from isoscope.study.experiment import Experiment, add

add(
    Experiment(
        "tangent",
        """Read how much of the gradients lies in the main directions.

        A low-rank proxy is fitted to the activations of some documents. Gradients of the loss
        on others are summed in one forward and backward pass, none is stored: their share in
        the proxy, and how much more isotropic they are without it, against subspaces of its
        complement, random subspaces, and gradients of shuffled targets, all with intervals.
        """,
        spec_at="isoscope.lab.tangent.spec:TangentSpec",
        examples=(
            "isoscope tangent models/gpt2",
            "isoscope tangent models/gpt2 corpus.txt --rank 8 -o runs/tangent",
            "isoscope tangent models/gpt2 --sites grad.1,gradw.h.0.mlp --json",
        ),
        noun="tokens",
        first="loading model",
        section_at="isoscope.lab.tangent.section:SECTION",
        exhibit_at="isoscope.lab.tangent.section:draw_tangent",
    ),
)
