"""Numbers read off summaries: one file each."""

from importlib import import_module

from isoscope.measures.base import MEASURES, Companion, Measure, level

# One line per measure; importing it files its record. The order is that of every table.
_IN_ORDER = (
    "mean_cosine",
    "mean_cosine_cross",
    "mean_cosine_centred",
    "mean_share",
    "mean_share_debiased",
    "outlier_share",
    "self_similarity",
    "inter_similarity",
    "intra_similarity",
    "sentence_similarity",
    "mev",
    "participation",
    "isoscore",
    "isoscore_debiased",
    "isoscore_star",
    "effective_rank",
    "effective_rank_debiased",
    "rankme",
    "stable_rank",
    "top_share",
    "alpha",
    "uniformity",
    "twonn",
    "mle_dimension",
    "lid",
    "cluster_isotropy",
    "norm_spread",
    "partition",
    "query_norm",
    "key_norm",
    "query_key_cosine",
    "query_key_dot",
    "query_cosine",
    "key_cosine",
    "query_isoscore",
    "key_isoscore",
    "query_first_share",
    "key_first_cosine",
    "score_spread",
    "attention_entropy",
    "largest_probability",
    "first_token_mass",
    "sink_mass",
    "tangent_energy",
    "tangent_energy_ratio",
    "tangent_anisotropy",
)
for _name in _IN_ORDER:
    import_module(f"{__name__}.{_name}")

__all__ = ["MEASURES", "Companion", "Measure", "level"]
