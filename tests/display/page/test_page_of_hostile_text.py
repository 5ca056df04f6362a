"""Whatever text models and files hold, the page shows it and obeys nothing."""

from dataclasses import replace

from isoscope.types import CauseShares, MatrixCells

HOSTILE = "</script><img src=x onerror=document.title='obeyed'>\x1b[2J\u202e"


def test_hostile_names_are_shown_as_text(opened, exhibits):
    bad = exhibits.exhibit(HOSTILE, layers=1)
    bad = replace(
        bad,
        readings=[
            replace(r, site=f"{HOSTILE}{r.site}", warnings=(HOSTILE,)) for r in bad.readings
        ],
        facts={"Model": HOSTILE, "Corpus": HOSTILE},
        remarks=[HOSTILE],
    )
    assert opened([bad, exhibits.exhibit("good")]) == ""
    assert "obeyed" not in opened.browser.title.replace("'obeyed'", "")
    assert opened.run("return document.querySelectorAll('img').length") == 0
    shown = opened.run("return document.querySelector('h1').textContent")
    assert shown.startswith("</script><img src=x onerror=")
    assert r"\x1b[2J\u202e" in shown
    assert opened.run("return document.body.textContent.includes('\\u001b')") is False
    said, outside, _ = opened.troubles()
    assert (said, outside) == ([], [])


def hostile(curve):
    """Return a curve whose words try to be obeyed."""
    if isinstance(curve, CauseShares):
        causes = tuple(replace(each, detail=HOSTILE, named=True) for each in curve.causes)
        return replace(curve, causes=causes, warnings=(HOSTILE,))
    if isinstance(curve, MatrixCells):
        return replace(curve, bands=(HOSTILE, "b", "c"))
    return curve


def test_hostile_words_of_causes_and_bands_are_shown_as_text(opened, exhibits):
    bad = exhibits.exhibit("words", layers=1, bands=[f"frequency {HOSTILE}", "frequency b"])
    curves = [hostile(curve) for curve in bad.curves]
    assert opened([replace(bad, curves=curves)]) == ""
    obeyed_nothing(opened)
    text = "return document.querySelector(arguments[0]).textContent"
    assert r"\x1b[2J\u202e" in opened.run(text, "#causes")
    for place in ("#bands", "#embeddings"):  # axes and legends cut long names short
        assert "</script><img" in opened.run(text, place), place
    assert "</script><img" in opened.rows("causes")[0]["detail"]


def obeyed_nothing(opened):
    """Check that no name was taken for markup, script or a control character."""
    assert opened.browser.title.endswith("· isoscope")
    assert opened.run("return document.querySelectorAll('img').length") == 0
    bare = "return /[\u0000-\u0008\u001b\u202e]/.test(document.body.textContent)"
    assert opened.run(bare) is False
    said, outside, _ = opened.troubles()
    assert (said, outside) == ([], [])


def test_a_real_survey_with_hostile_tokens_files_and_models_is_shown_as_text(opened, sunken):
    import isoscope as iso

    assert opened(iso.report(sunken).text) == ""
    obeyed_nothing(opened)
    title = opened.run("return document.querySelector('h1').textContent")
    assert title == "run <img src=x onerror=document.title='obeyed'>"
    facts = opened.run("return document.querySelector('.facts').textContent")
    assert "Model<img src=x onerror=document.title='obeyed'>" in facts
    assert r"\u202e" in facts  # of the corpus
    words = opened.run("return document.querySelector('#causes details').textContent")
    assert "</script><img/src=x/onerror=" in words and "at position 0" in words
    verdict = opened.run("return document.querySelector('#verdict').textContent")
    assert "norm sinks, one token per document" in verdict
    drawn = opened.run("return isoscope.drawn")
    assert {"causes", "bands-position-mean-cosine", "norm-mean-cosine", "embeddings"} <= set(
        drawn
    )
