"""The regularisation sweep: fine-tune with a penalty at several weights and seeds."""

from isoscope.study.experiment import Experiment, add

add(
    Experiment(
        "sweep",
        """Fine-tune with a penalty at several weights, and compare.

        Every weight and seed is a cell of its own, kept when it is finished: the same command
        resumes an unfinished sweep. Differences are to weight 0 with the same seed, which has
        the same head, dropout and order of examples. `isoscope report RUN` draws what was
        found.
        """,
        spec_at="isoscope.lab.sweep.spec:SweepSpec",
        examples=(
            "isoscope sweep models/minilm sst2.tsv --task sst2 --steps 9 -o runs/sst2",
            "isoscope sweep models/minilm reviews.jsonl --label stars --seeds 1 --steps 9",
        ),
        noun="cells",
        first="loading model",
        section_at="isoscope.lab.sweep.section:SECTION",
        exhibit_at="isoscope.lab.sweep.section:draw_sweep",
    ),
)
