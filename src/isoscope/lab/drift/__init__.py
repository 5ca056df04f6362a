"""What drifting input does to untrained blocks; drift and anisotropy over layers."""

from isoscope.study.experiment import Experiment, add

add(
    Experiment(
        "drift",
        """Feed drifting input to untrained blocks, and compare with closed forms.

        Inputs are z + b, z Gaussian and b a fixed direction whose norm is swept. Cosines of
        input, attention and output, norms of the mean, and how sharp attention is, over many
        initialisations; each of them is kept when it is finished. With --survey, the rank
        correlation of drift and mean cosine over the layers of a model instead.
        """,
        spec_at="isoscope.lab.drift.spec:DriftSpec",
        examples=(
            "isoscope drift --width 96 --tokens 32 --initialisations 3 -o runs/drift",
            "isoscope drift --arch vit --at norm-bias --width 96 --tokens 32 --json",
            "isoscope drift --survey runs/minilm",
        ),
        noun="initialisations",
        section_at="isoscope.lab.drift.section:SECTION",
        exhibit_at="isoscope.lab.drift.section:draw_drift",
    ),
)
