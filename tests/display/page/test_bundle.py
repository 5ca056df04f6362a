"""What a page embeds: packed values, scripts, and the policy that allows nothing else."""

import base64
import hashlib
import json
import re
import sys
import zlib

import numpy as np
import pytest

from isoscope.display.page.bundle import (
    asset,
    build_runtime,
    deflate,
    pack,
    pack_column,
    require_package,
    script_hash,
    security_policy,
    vega,
)
from isoscope.errors import ConfigError


def test_the_runtime_is_whole_and_needs_no_module():
    script = vega()
    assert "window.vegaEmbed=" in script
    assert "import.meta" not in script
    assert script.startswith("(()=>{") and script.endswith("})();")


def test_our_own_script_cannot_end_its_element():
    for name in ("page.js", "page.css"):
        assert "</" not in asset(name)
        assert "<!--" not in asset(name)


def test_the_policy_names_scripts_by_their_hash_and_forbids_the_rest():
    digest = base64.b64encode(hashlib.sha256(b"x").digest()).decode()
    assert script_hash("x") == f"'sha256-{digest}'"
    text = security_policy("x")
    assert "default-src 'none'" in text and script_hash("x") in text
    script = text.split("script-src ")[1].split(";")[0]
    assert "unsafe" not in script
    assert "connect-src" not in text  # falls back to 'none'


def test_a_missing_package_is_reported_with_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ConfigError, match="vl-convert") as caught:
        require_package("vl_convert")
    assert "isoscope[report]" in caught.value.hint


@pytest.mark.slow
def test_the_runtime_is_what_the_pinned_converter_bundles():
    assert zlib.decompress(build_runtime()).decode() == vega()


HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028\u2029\x00"


def test_what_is_packed_is_unpack():
    value = {"a": [1, 2.5, None], "b": HOSTILE}
    assert json.loads(zlib.decompress(base64.b64decode(pack(value)))) == value


def test_packed_text_has_nothing_a_page_would_obey():
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", pack(HOSTILE))
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", deflate(HOSTILE))


def test_words_are_written_once():
    assert pack_column(["a", "b", "a"]) == {"words": ["a", "b"], "at": [0, 1, 0]}
    assert pack_column([("x",), (), ("x",)])["at"] == [0, 1, 0]
    assert pack_column([1, 2.0, None]) == {"is": [1, 2, None]}


@pytest.mark.parametrize(
    ("number", "kept"),
    [(1 / 3, 0.33333333), (np.float64(2.0), 2), (None, None), (float("nan"), None), (7, 7)],
)
def test_numbers_keep_eight_digits(number, kept):
    assert pack_column([number])["is"] == [kept]


def test_what_is_no_number_is_never_pack():
    with pytest.raises(ValueError, match="JSON"):
        pack([float("nan")])
