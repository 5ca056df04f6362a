"""The nursery: small models trained from the first step, and experiments with ingredients."""

from isoscope.study.experiment import Experiment, add

add(
    Experiment(
        "nursery train",
        """Train a small model from step 0 and save its checkpoints.

        Learns from CORPUS, a synthetic language or generated images. -o holds folders step_N,
        which transformers loads after import isoscope, metrics.csv and what was held out; the
        same command resumes an unfinished training to the same weights.
        """,
        spec_at="isoscope.lab.nursery.spec:TrainSpec",
        examples=(
            "isoscope nursery train -o runs/small --width 32 --steps 9",
            "isoscope nursery train --language zipf --vocabulary 64 --width 16 --steps 5",
        ),
        noun="tokens",
        first="reading texts",
    ),
)
add(
    Experiment(
        "nursery ablate",
        """Train models that differ in one ingredient, and compare.

        Every combination of the factors' levels is trained from several seeds on a synthetic
        language of known entropy, and its trajectory measured. Prints main effects and
        interactions on the cosine and IsoScore of the output and of the middle layer, and on
        the held-out loss, with 95 % intervals. The same command resumes an unfinished run;
        isoscope report draws effects and curves of cells.
        """,
        spec_at="isoscope.lab.nursery.ablate_spec:AblateSpec",
        examples=(
            "isoscope nursery ablate --factors tie --seeds 1 --steps 1 -o runs/tie",
            "isoscope nursery ablate --factors width=16:32 --seeds 1 --steps 1 --json",
        ),
        noun="tokens",
        first="planning cells",
        section_at="isoscope.lab.nursery.section:SECTION",
        exhibit_at="isoscope.lab.nursery.section:draw_ablation",
    ),
)
