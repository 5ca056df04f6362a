"""The scripts of a page and the policy that lets nothing else run."""

import base64
import hashlib
import sys

import pytest

from isoscope.display.page.runtime import asset, bundled, fingerprint, needed, policy, vega
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
    assert fingerprint("x") == f"'sha256-{digest}'"
    text = policy("x")
    assert "default-src 'none'" in text and fingerprint("x") in text
    script = text.split("script-src ")[1].split(";")[0]
    assert "unsafe" not in script
    assert "connect-src" not in text  # falls back to 'none'


def test_a_missing_package_is_said_with_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ConfigError, match="vl-convert") as caught:
        needed("vl_convert")
    assert "isoscope[report]" in caught.value.hint


@pytest.mark.slow
def test_the_runtime_is_what_the_pinned_converter_bundles():
    import zlib

    assert zlib.decompress(bundled()).decode() == vega()
