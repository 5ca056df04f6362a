"""The road of the work: a spec, its plan, units, workers, and the run that they fill."""

from isoscope.study.experiment import Experiment, add

add(
    Experiment(
        "measure",
        "Measure how anisotropic the vectors in VECTORS are.",
        spec_at="isoscope.study.rows:MeasureSpec",
        examples=(
            "isoscope measure vectors.npy",
            "isoscope measure vectors.npy -m mean-cosine -m isoscore-debiased --json",
            "isoscope measure vectors.npy --all -o runs/vectors",
            "cat vectors.npy | isoscope measure - --name vectors --csv",
        ),
        noun="rows",
        blocks=(32_000_000,),
    ),
)

add(
    Experiment(
        "survey",
        "Run MODEL over CORPUS once and measure every site of it.",
        spec_at="isoscope.study.survey:SurveySpec",
        examples=(
            "isoscope survey models/minilm -o runs/mine",
            "isoscope survey models/minilm corpus.txt --tokens 50000 --sites resid,norm",
            "isoscope survey models/minilm reviews.jsonl --column text --json",
        ),
        noun="tokens",
        first="loading model",
        blocks=(16_000_000, 24_000_000),
    ),
)
