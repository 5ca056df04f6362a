"""Flags of models: the same words in every command that loads one."""

from isoscope.cli.main import app

LOADING = ("survey", "norm", "matrices", "zero", "probe")
SHARED = ("model", "--dtype", "--device", "--trust-remote-code", "--length", "--batch")


def test_a_flag_has_one_meaning_everywhere():
    said = {}
    for name in LOADING:
        for parameter in app.commands[name].params:  # pyright: ignore
            for flag in SHARED:
                if flag in parameter.opts:
                    said.setdefault(flag, {}).setdefault(
                        parameter.help.partition("  [")[0], set()
                    ).add(name)
    assert set(said) == set(SHARED)
    assert {flag: len(texts) for flag, texts in said.items()} == dict.fromkeys(SHARED, 1)
    everywhere = {"model", "--dtype", "--device", "--trust-remote-code"}
    assert {f for f in said if set().union(*said[f].values()) == set(LOADING)} == everywhere
