"""isoscope help: errors by their last word, and help pages of commands."""

import json

import pytest

from isoscope.cli.help import error_sections


def test_the_last_word_of_an_error_is_a_topic(isoscope, place):
    see = isoscope("read", "nothing").stderr.splitlines()[2]
    words = see.removeprefix("  see:  isoscope ").split()
    done = isoscope(*words)
    assert done.exit_code == 0 and words[1] == "store-missing"
    symptom, cause, fix = done.stdout.strip().split("\n\n")[:3]
    assert symptom.startswith("Symptom: no run folder is called")
    assert cause.startswith("Cause: ") and fix.startswith("Fix: ")
    told = json.loads(isoscope(*words, "--json").stdout)
    assert told == {"topic": "store-missing", "text": done.stdout.removesuffix("\n")}


def test_a_command_is_a_topic(isoscope):
    assert isoscope("help", "merge").stdout == isoscope("merge", "--help").stdout
    assert isoscope("help", "survey").stdout == isoscope("survey", "--help").stdout


@pytest.mark.parametrize("word", ["unknown-mesure", "reed"])
def test_a_misspelt_topic_is_named_with_its_neighbour(isoscope, word):
    done = isoscope("help", word)
    assert done.exit_code == 2
    assert "did you mean" in done.stderr and done.stderr.endswith(" unknown-topic\n")


def test_sections_are_plain_text():
    sections = error_sections()
    assert len(sections) > 100
    marked = [slug for slug, text in sections.items() if "**" in text or "`" in text]
    assert marked == []
