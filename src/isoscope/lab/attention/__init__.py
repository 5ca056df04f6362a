"""Heads of attention: mean queries and keys, and how sharp the attention is that they make."""

from isoscope.study.experiment import Experiment, add

add(
    Experiment(
        "attention",
        """Read queries, keys and sharpness of every head.

        For each head the lengths of its mean query and mean key, the cosine between them, the
        cosines within queries and within keys, and the spread of scores, the entropy and the
        largest probability of its attention, all with intervals over documents. Scores are
        computed for a sample of queries; attention maps are never stored.
        """,
        spec_at="isoscope.lab.attention.spec:AttentionSpec",
        examples=(
            "isoscope attention models/minilm",
            "isoscope attention models/minilm corpus.txt --queries 8 -o runs/heads",
            "isoscope attention models/series --tokens 500 --queries all --json",
        ),
        noun="tokens",
        first="loading model",
        section_at="isoscope.lab.attention.section:SECTION",
        exhibit_at="isoscope.lab.attention.section:draw_attention",
    ),
)
