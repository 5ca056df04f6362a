"""Labels: integers stay integers, everything else becomes strings."""

import numpy as np
import pytest

from isoscope.errors import SourceError
from isoscope.source.labels import as_documents, as_strings, labelled


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (np.array([1, 2], dtype=np.int8), [1, 2], "i"),
        (np.array([1, 2], dtype=np.uint64), [1, 2], "u"),
        ([1, 2], [1, 2], "i"),
        (["a", "b"], ["a", "b"], "O"),
        ([1, "b"], ["1", "b"], "O"),
        ([10**30, 1], [str(10**30), "1"], "O"),
        (np.array(["a", "bc"]), ["a", "bc"], "O"),
        (np.array([b"a", "é".encode()]), ["a", "é"], "O"),
        (np.array(["a", 1], dtype=object), ["a", "1"], "O"),
        ([], [], "O"),
    ],
)
def test_documents_are_integers_or_python_strings(values, expected, kind):
    found = as_documents(values, "f")
    assert found.tolist() == expected and found.dtype.kind == kind


@pytest.mark.parametrize("values", [[1.5], [None], [True], [("a",)], np.array([1.0])])
def test_other_documents_are_refused(values):
    with pytest.raises(SourceError, match="expected strings or integers as documents of f"):
        as_documents(values, "f")


def test_ids_and_texts_are_strings():
    assert as_strings([1, None, "a", 2.5]) == ["1", "", "a", "2.5"]
    assert as_strings(np.array([b"x"])) == ["x"]


def test_labels_by_role_are_those_of_a_chunk():
    found = labelled({"document": [1], "id": [2], "text": None}, "f")
    assert found["documents"].tolist() == [1] and found["ids"] == ["2"] and "texts" not in found
