"""Verdict: three sentences with numbers, and under each the rule that produced it."""

from collections.abc import Sequence
from math import floor, log10

from isoscope.display.number import count
from isoscope.display.page.section import Exhibit, Finding, Panel, Section
from isoscope.escape import for_html
from isoscope.site import POOLED, STREAM, Site, output_of
from isoscope.types import CauseShare, CauseShares, DimensionScores, Reading, SinkShare

COLLECTION = "rows"  # the site of vectors that are there already
CARRIED = 0.1  # share of the mean cosine from which on dimensions are reported
OUTLIER, TOP = 5.0, 3  # outlier score of dimensions that are named, and how many of them
SINK_SHARES = (0.9, 0.5)  # shares of the variance from which on sinks are reported first

PLACES = 4  # behind the point of a figure; smaller ones are in powers of ten
WHOLE = {"tokens": "texts", "frames": "recordings", "patches": "images"}


def show(exhibits: Sequence[Exhibit]) -> Panel | None:
    """Return the findings of each run, its provenance beside them."""
    return Panel(body="".join(_card(exhibit, len(exhibits) > 1) for exhibit in exhibits))


def findings(exhibit: Exhibit) -> list[Finding]:
    """Return at most three findings about a run, or those of the experiment that made it."""
    site = output_site(exhibit)
    if site is None or exhibit.findings:
        return list(exhibit.findings)
    if exhibit.sites == [COLLECTION]:
        rank = _effective_rank(exhibit, site)
        found = (_mean_cosine(exhibit, site), *_causes(exhibit, site), rank)
        return [each for each in found if each is not None]
    last = _sinks(exhibit) or _effective_rank(exhibit, site)
    found = (_mean_cosine(exhibit, site), _mean_share(exhibit, site), last)
    return [each for each in found if each is not None]


def output_site(exhibit: Exhibit) -> str | None:
    """Return the site of the output of the model."""
    return output_of(exhibit.sites)


def _mean_cosine(exhibit: Exhibit, site: str) -> Finding | None:
    for measure, pairs in (("mean-cosine-cross", "unrelated"), ("mean-cosine", "different")):
        each = exhibit.reading(measure, site)
        if each is not None:
            rows = f"{pairs} {_noun(exhibit, site)}"
            text = f"is the mean cosine of two {rows} {_where(exhibit, site)}"
            return Finding(_figure(each), text + _isotropic(exhibit, each), _rule(each))
    return None


def _mean_share(exhibit: Exhibit, site: str) -> Finding | None:
    each = exhibit.reading("mean-share", site)
    if each is None:
        return None
    rows = _noun(exhibit, site)
    text = f"of the squared length of {rows} lies in one vector, their mean"
    return Finding(_percent(each.value), text, _rule(each))


def _causes(exhibit: Exhibit, site: str) -> list[Finding]:
    """Return what the mean cosine of a collection is owed to, dimensions by their numbers."""
    found = [curve for curve in exhibit.curves_of(CauseShares) if curve.site == site]
    causes = [each for curve in found for each in curve.causes]
    dimensions = next((each for each in causes if each.cause == "dimensions"), None)
    sentences = [_scores(exhibit, site)]
    if dimensions is not None and dimensions.named and dimensions.share >= CARRIED:
        names = dimensions.detail.partition("; zeroed")[0]
        several = "," in names
        text = f"of the mean cosine is carried by dimension{'s' * several} {names}"
        if dimensions.falls_to is not None:
            rest = round(dimensions.falls_to, 2) + 0.0  # no minus in front of zero
            text += f"; without {'them' if several else 'it'} it falls to {rest:.2f}"
        rule = f"causes by removal at {site}{_around(dimensions)}"
        sentences = [Finding(_percent(dimensions.share), text, rule)]
    share = _mean_share(exhibit, site)
    return [each for each in (share, *sentences) if each is not None]


def _scores(exhibit: Exhibit, site: str) -> Finding | None:
    """Return the dimensions whose squares are far above the average."""
    curves = [c for c in exhibit.curves_of(DimensionScores) if c.site == site]
    found = [
        (float(score), int(dimension))
        for curve in curves[:1]
        for dimension, score in zip(curve.largest, curve.score, strict=True)
        if score >= OUTLIER
    ]
    top = sorted(found, reverse=True)[:TOP]
    if not top:
        return None
    one = len(top) == 1
    names = ", ".join(str(dimension) for _, dimension in top)
    text = (
        f"times the average is the mean square of dimension{'s' * (not one)} {names}"
        f"{'' if one else ' or less, in this order'}"
    )
    return Finding(f"{top[0][0]:.3g}", text, f"outlier score of {OUTLIER:g} or more at {site}")


def _around(each: CauseShare) -> str:
    if each.low is None or each.high is None:
        return ""
    return f", 95 % interval {100 * each.low:.0f} to {100 * each.high:.0f} %"


def _sinks(exhibit: Exhibit) -> Finding | None:
    """Return the blocks where norm sinks have most of the variance."""
    stream = [c for c in exhibit.curves_of(SinkShare) if Site.parse(c.site).is_stream]
    limit = next((limit for limit in SINK_SHARES if any(c.share > limit for c in stream)), None)
    if limit is None:
        return None
    heavy = [curve for curve in stream if curve.share > limit]
    least = min(curve.share for curve in heavy)
    worst = max(heavy, key=lambda curve: curve.share)
    each_document = worst.rows / max(worst.documents, 1)
    who = "one token" if 0.75 <= each_document <= 1.25 else f"{each_document:.2g} tokens"
    text = (
        f"or more of the variance comes from norm sinks, {who} per document, "
        f"{_blocks([curve.site for curve in heavy])}"
    )
    rule = (
        f"1 - tr S(no sinks) / tr S(all) > {limit:g}; largest at {worst.site}: "
        f"{worst.share:.3f}, where {worst.rows:,} of {worst.n:,} rows are sinks"
    )
    return Finding(f"{floor(100 * least)} %", text, rule)


def _effective_rank(exhibit: Exhibit, site: str) -> Finding | None:
    each = exhibit.estimate("effective-rank", site)
    if each is None:
        return None
    form = "" if each.measure == "effective-rank" else "debiased "
    text = (
        f"is the {form}effective rank of the covariance {_where(exhibit, site)}, out of "
        f"{count(each.d)} dimensions; an isotropic cloud fills them all"
    )
    more = " or more" if each.biased else ""  # few rows or documents make it too low
    return Finding(f"{each.value:.0f}{more}", text, _rule(each))


def _noun(exhibit: Exhibit, site: str) -> str:
    """Return what a row of a site is; pooled rows are whole documents."""
    return WHOLE.get(exhibit.noun, "documents") if site == POOLED else exhibit.noun


def _figure(each: Reading) -> str:
    if each.low is None or each.high is None or each.high <= each.low:
        return f"{each.value:.2f}"
    half = max(each.high - each.value, each.value - each.low)
    places = max(2, -floor(log10(half)))
    if places > PLACES:  # so that it stays a number, and beside the sentence
        return f"{each.value:.1e} ± {half:.0e}"
    return f"{each.value:.{places}f} ± {half:.{places}f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"


def _isotropic(exhibit: Exhibit, each: Reading) -> str:
    level = exhibit.levels.get((each.site, each.variant, each.measure))
    return "" if level is None else f"; an isotropic cloud has {abs(level):.2g}"


def _where(exhibit: Exhibit, site: str) -> str:
    return "here" if exhibit.sites == [site] else f"at the output, {site}"


def _rule(each: Reading) -> str:
    known = each.low is not None and each.high is not None
    around = f", 95 % interval {each.low:.4g} to {each.high:.4g}" if known else ""
    biased = "".join(f"; {text}" for text in each.warnings if "biased" in text)
    place = f"{each.measure} at {each.site}, variant {each.variant}"
    return f"{place}, n = {each.n:,}{around}{biased}"


def _blocks(sites: Sequence[str]) -> str:
    """Return sites in words, consecutive blocks as a range."""
    stream = [site for site in map(Site.parse, sites) if site.region == STREAM]
    layers = sorted({site.layer for site in stream if site.layer is not None})
    if not layers:
        return f"at {', '.join(sites)}"
    if len(layers) == 1:
        return f"in block {layers[0]}"
    consecutive = layers[-1] - layers[0] + 1 == len(layers)
    return f"in {'blocks' if consecutive else 'most blocks from'} {layers[0]} to {layers[-1]}"


def _card(exhibit: Exhibit, several: bool) -> str:
    items = "".join(
        f'<li><b class="figure">{for_html(each.figure)}</b> '
        f"<span>{for_html(each.text)}.</span>"
        f'<small class="rule">{for_html(each.rule)}</small></li>'
        for each in findings(exhibit)
    )
    verdict = f'<ol class="sentences">{items}</ol>' if items else f"<p>{_nothing(exhibit)}</p>"
    facts = "".join(
        f"<div><dt>{for_html(name)}</dt><dd>{for_html(text)}</dd></div>"
        for name, text in exhibit.facts.items()
    )
    remarks = "".join(f"<li>{for_html(text)}</li>" for text in exhibit.remarks)
    notes = f'<ul class="remarks">{remarks}</ul>' if remarks else ""
    name = f"<h3>{for_html(exhibit.name)}</h3>" if several else ""
    return (
        f'<div class="card">{name}<div class="beside"><div>{verdict}{notes}</div>'
        f'<dl class="facts">{facts}</dl></div></div>'
    )


def _nothing(exhibit: Exhibit) -> str:
    if not exhibit.readings:
        return "This run has no readings to show."
    measures = sorted({each.measure for each in exhibit.readings})
    return for_html(
        "The verdict needs mean-cosine, mean-share or effective-rank; this run has "
        + ", ".join(measures[:5])
        + "."
    )


SECTION = Section("verdict", "Verdict", show)
