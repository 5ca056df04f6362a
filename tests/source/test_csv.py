"""csv: with and without header, lists in cells, quotes, and cells that are no numbers."""

import csv
import io
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isoscope.errors import IsoscopeError, RowError, SourceError
from isoscope.source import csv as csv_module
from isoscope.source import lines, open_source, row_source

ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}

anything = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(allow_nan=True, allow_infinity=True),
)


@pytest.fixture
def given_text(tmp_path):
    def make(content, suffix="csv", **options):
        path = tmp_path / f"v.{suffix}"
        path.write_text(content)
        return open_source(path, **options)

    return make


@given(rows=anything, separator=st.sampled_from(",;\t"), size=st.integers(1, 7))
def test_what_python_writes_is_read_exactly(rows, separator, size, tmp_path_factory, whole):
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    head = separator.join(f"e{i}" for i in range(rows.shape[1]))
    body = [separator.join(map(repr, each)) for each in rows.tolist()]
    path.write_text("\n".join([head, *body]))
    np.testing.assert_array_equal(whole(open_source(path), size), rows)


@given(
    texts=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n")), min_size=1
    ),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)
def test_texts_come_out_as_the_csv_module_wrote_them(texts, quoting, tmp_path_factory, labels):
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=quoting)
    writer.writerows([["text", "x", "y"], *([each, 0.5, 1.0] for each in texts)])
    path = tmp_path_factory.getbasetemp() / "texts.csv"
    path.write_bytes(out.getvalue().encode())
    assert labels(open_source(path, text="text"))["texts"] == texts


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4",
        "\ufeff1,2\r\n3,4\r\n\r\n",
        "a,b\n1,2\n\n3,4\n\n",
        "1;2\n3;4",
        "1\t2\n3\t4",
        "a,b\n 1, 2\n+3,4.\n",
        'a,b\n"1","2"\n"3","4"',
        "id,a,b\nx,1,2\ny,3,4",
        "x,1.0,2\ny,3,4",  # no header: it would not hold a number with a fraction
        ",0,1\n0,1,2\n1,3,4",  # pandas, with its index
        "0,1,2\n1,2,0\n3,4,0",
    ],
)
def test_many_shapes_of_file_hold_the_same_rows(text, given_text, whole):
    np.testing.assert_array_equal(whole(given_text(text))[:, :2], [[1, 2], [3, 4]])


@pytest.mark.parametrize("index", [False, True])
def test_what_pandas_writes_of_a_matrix_is_read(index, tmp_path, cloud, whole):
    rows = cloud(dtype="float64")
    pd.DataFrame(rows).to_csv(tmp_path / "v.csv", index=index)
    np.testing.assert_array_equal(whole(open_source(tmp_path / "v.csv")), rows)


@pytest.mark.parametrize("as_list", [False, True])
def test_what_pandas_writes_of_a_column_of_vectors_is_read(as_list, tmp_path, cloud, whole):
    rows = cloud(d=20)
    column = [each.tolist() for each in rows] if as_list else list(rows)
    pd.DataFrame({"id": range(50), "v": column}).to_csv(tmp_path / "v.csv", index=False)
    found = whole(open_source(tmp_path / "v.csv"))
    np.testing.assert_allclose(found, rows, rtol=1e-5)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("e0,e1", [[1, 2]]),
        ("e*", [[1, 2]]),
        ("e1", [[2]]),
        ("norm, e0", [[9, 1]]),
        (None, [[1, 2, 9]]),
    ],
)
def test_columns_are_chosen(column, expected, given_text, whole):
    source = given_text("doc,e0,e1,norm\n7,1,2,9\n", column=column, document="doc")
    np.testing.assert_array_equal(whole(source), expected)


def test_a_column_of_ids_is_not_a_dimension(given_text, whole):
    text = "id,e0,e1\n1,0.1,0.2\n2,0.3,0.4\n"
    with pytest.raises(SourceError, match="got 'id' among 3 columns of numbers") as caught:
        given_text(text)
    assert "--column" in caught.value.hint and "--id id" in caught.value.hint
    expected = [[0.1, 0.2], [0.3, 0.4]]
    np.testing.assert_array_equal(whole(given_text(text, id="id")), expected)
    np.testing.assert_array_equal(whole(given_text(text, column="e*")), expected)


def test_files_without_header_name_columns_by_number(given_text, whole, labels):
    source = given_text("a,1.5,2\nb,3,4\n", document="0", column="1,2")
    np.testing.assert_array_equal(whole(source), [[1.5, 2], [3, 4]])
    assert labels(source)["documents"] == ["a", "b"]


def test_a_quoted_cell_may_run_over_lines(given_text, whole, labels):
    text = 'text,x\n"one\ntwo, ""three""",1\n"four",2\n'
    source = given_text(text, text="text")
    np.testing.assert_array_equal(whole(source), [[1], [2]])
    assert labels(source)["texts"] == ['one\ntwo, "three"', "four"]


def test_a_header_larger_than_the_sample_is_no_file_without_rows(
    given_text, whole, monkeypatch
):
    monkeypatch.setattr(csv_module, "SAMPLE_BYTES", 10)
    source = given_text("first,second,third\n1,2,3\n4,5,6\n")
    np.testing.assert_array_equal(whole(source), [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("separator", [",", " "])
def test_a_list_beyond_the_largest_width_is_not_turned_into_numbers(
    given_text, monkeypatch, separator
):
    monkeypatch.setattr(csv_module, "MAX_WIDTH", 20)
    monkeypatch.setattr(row_source, "MAX_WIDTH", 20)
    monkeypatch.setattr(csv_module, "parse_list", lambda _: pytest.fail("it was"))
    with pytest.raises(SourceError, match="width 20 at most"):
        given_text(f'id,v\na,"[{separator.join("1" * 30)}]"\n')


# From a small process: the peak of a child counts what its parent had when it was forked.
PEAK = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss, used.ru_utime + used.ru_stime)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "code", "words"),
    [
        ("wide.csv", (",".join(["0.5"] * 10**6) + "\n") * 3, 2, "rows of width 1000000"),
        ("cell.csv", 'id,a,b\n"' + "x" * 40_000_000 + '",1,2\n2,3,4\n', 0, "mean-cosine"),
        ("lines.csv", 'id,a,b\n"' + "x\n" * 20_000_000 + '",1,2\n2,3,4\n', 0, "mean-cosine"),
        ("open.csv", 'id,a,b\n1,2,3\n"' + "x\n" * 20_000_000, 2, "closing quotation mark"),
        ("list.csv", 'v,a\n"[' + "1," * 10**7 + '1]",x\n', 2, "width 1048576 at most"),
        ("list.jsonl", "[" + "1," * 10**7 + "1]\n", 2, "width 1048576 at most"),
    ],
    ids=lambda each: each if isinstance(each, str) and len(each) < 20 else "",
)
def test_files_made_to_do_harm_end_within_seconds_and_500_mb(
    name, content, code, words, tmp_path
):
    (tmp_path / name).write_text(content)
    command = [sys.executable, "-m", "isoscope", "measure", str(tmp_path / name)]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ONE_THREAD,
    )
    *said, used = done.stdout.splitlines()
    peak, seconds = map(float, used.split())
    assert done.returncode == code, said
    assert words in "\n".join(said) and "Traceback" not in "\n".join(said)
    assert peak < 500 * 1000, f"{peak} KiB"
    assert seconds < 15  # processor time: the machine is shared


BAD = [
    ("3,abc", "'abc' in column 'b'"),
    ("3,", "'' in column 'b'"),
    ("3,1_0", "'1_0' in column 'b'"),
    ("3", "1 cells instead of 2"),
    ("3,4,5", "3 cells instead of 2"),
    ('3,"4,5"', "'4,5' in column 'b'"),
    (b"3,\xff", "bytes that are not UTF-8"),
    ("3,true", "'true' in column 'b'"),
    ("3,[4]", r"'\[4\]' in column 'b'"),
]


@pytest.mark.parametrize(("line", "got"), BAD)
def test_a_cell_that_is_no_number_is_named_or_the_line_dropped(line, got, tmp_path, whole):
    raw = line if isinstance(line, bytes) else line.encode()
    path = tmp_path / "v.csv"
    path.write_bytes(b"a,b\n1,2\n\n" + raw + b"\n" + b"5,6\n" * 70)
    with pytest.raises(RowError, match=rf"expected 2 numbers in line 4 of .*v.csv, got {got}"):
        whole(open_source(path))
    source = open_source(path, skip_bad=True)
    assert len(whole(source)) == 71 and source.skipped == 1


def test_a_decimal_comma_is_not_two_numbers(given_text, whole):
    source = given_text("a;b\n1;2\n0,5;0,3\n")
    with pytest.raises(RowError, match="'0,5' in column 'a'"):
        whole(source)


@pytest.mark.parametrize(
    ("cell", "got"),
    [
        ("[1, x]", "'x' among them"),
        ("[1]", "1"),
        ("1, 2", "the cell '1, 2'"),
        ("[1 ... 2]", r"'\.\.\.'"),
    ],
)
def test_a_list_that_is_none_is_named_or_dropped(cell, got, given_text, whole):
    text = f'id,v\n1,"[1, 2]"\n2,"{cell}"\n3,"[3 4]"\n'
    with pytest.raises(RowError, match=f"line 3 of .*got {got}"):
        whole(given_text(text))
    source = given_text(text, skip_bad=True)
    np.testing.assert_array_equal(whole(source), [[1, 2], [3, 4]])
    assert source.skipped == 1


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("a,b\nx,y\n", None, "none that could be a vector"),
        ("a,b\n", None, "got 0 rows"),
        ("\n\n", None, "got 0 rows"),
        ("a,b\nx,1\n", "a", "in column 'a' .* got 'x'"),
        ('a,b\n"[1]","[2]"\n', None, "expected one column of vectors .* got 2"),
        ('a\n"[]"\n', None, "got width 0"),
    ],
)
def test_files_without_vectors_are_refused(text, column, words, given_text):
    with pytest.raises(SourceError, match=words):
        given_text(text, column=column)


def test_a_wrong_column_is_corrected(given_text):
    with pytest.raises(IsoscopeError, match="no column is called 'nomr'") as caught:
        given_text("e0,norm\n1,2\n", column="nomr")
    assert "did you mean 'norm'" in caught.value.hint


def test_an_empty_document_is_no_document(given_text, whole):
    text = "d,x\na,1\n,2\n"
    with pytest.raises(RowError, match=r"line 3 of .*no document"):
        whole(given_text(text, document="d"))
    assert len(whole(given_text(text, document="d", skip_bad=True))) == 1


def test_a_quotation_mark_without_end_is_refused(given_text, monkeypatch):
    with pytest.raises(SourceError, match=r"closing quotation mark .* after line 2"):
        given_text('a,b\n"x,1\ny,2\n')
    monkeypatch.setattr(lines, "MAX_LINE", 50)
    with pytest.raises(SourceError, match="more in line 2"):
        given_text('a,b\n"x,1\n' + "y,2\n" * 50)


def test_a_very_long_cell_is_read(given_text, whole):
    text = "v\n" + '"[' + ", ".join(["0.125"] * 50_000) + ']"\n'
    assert whole(given_text(text)).shape == (1, 50_000)


def test_a_tab_is_what_separates_a_tsv(given_text, whole):
    np.testing.assert_array_equal(whole(given_text("a\tb,c\n1\t2\n", "tsv")), [[1, 2]])
