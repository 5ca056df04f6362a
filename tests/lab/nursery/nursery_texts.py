"""Sixty short texts, and a model of a few thousand parameters."""

TEXTS = [
    f"we hold these truths to be self evident, number {number}: all men are created equal"
    for number in range(60)
]
TINY = {
    "width": 16,
    "heads": 2,
    "layers": 2,
    "tokenizer": "bytes",
    "length": 16,
    "batch": 4,
    "threads": 1,
}
