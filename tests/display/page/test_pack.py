"""Values packed into a page."""

import json
import re

import numpy as np
import pytest

from isoscope.display.page.pack import column, deflated, for_script, packed, short, unpacked

HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028\u2029\x00"


def test_what_is_packed_is_unpacked():
    value = {"a": [1, 2.5, None], "b": HOSTILE}
    assert unpacked(packed(value)) == value


def test_packed_text_has_nothing_a_page_would_obey():
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", packed(HOSTILE))
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", deflated(HOSTILE))


def test_json_in_a_script_cannot_end_it():
    text = for_script({"name": HOSTILE})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"name": HOSTILE}


def test_words_are_written_once():
    assert column(["a", "b", "a"]) == {"words": ["a", "b"], "at": [0, 1, 0]}
    assert column([("x",), (), ("x",)])["at"] == [0, 1, 0]
    assert column([1, 2.0, None]) == {"is": [1, 2, None]}


@pytest.mark.parametrize(
    ("number", "kept"),
    [(1 / 3, 0.33333333), (np.float64(2.0), 2), (None, None), (float("nan"), None), (7, 7)],
)
def test_numbers_keep_eight_digits(number, kept):
    assert short(number) == kept


def test_what_is_no_number_is_never_packed():
    with pytest.raises(ValueError, match="JSON"):
        packed([float("nan")])
