"""Writing a file whole, and never over what is not ours."""

import pytest

from isoscope.display.page.write import MARK, check_file, write_bytes
from isoscope.errors import StoreError


def test_a_page_is_written_and_replaced_only_on_request(tmp_path):
    page = tmp_path / "page.html"
    write_bytes(page, f"{MARK} one".encode())
    with pytest.raises(StoreError, match="which exists") as caught:
        write_bytes(page, f"{MARK} two".encode())
    assert caught.value.slug == "file-exists"
    assert page.read_text().endswith("one")
    write_bytes(page, f"{MARK} two".encode(), overwrite=True)
    assert page.read_text().endswith("two")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("content", ["", "my own notes", "x" * 300 + MARK])
def test_a_file_of_somebody_else_is_never_replaced(tmp_path, content):
    page = tmp_path / "notes.html"
    page.write_text(content)
    with pytest.raises(StoreError, match="did not write it") as caught:
        write_bytes(page, b"ours", overwrite=True)
    assert caught.value.slug == "file-foreign"
    assert page.read_text() == content


def test_links_and_folders_are_not_replaced(tmp_path):
    (tmp_path / "page.html").write_text(MARK)
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    (tmp_path / "folder").mkdir()
    for name in ("link.html", "folder"):
        with pytest.raises(StoreError, match="did not write it"):
            check_file(tmp_path / name, overwrite=True)


def test_a_picture_is_replaced_by_a_picture_of_its_kind(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 old")
    write_bytes(tmp_path / "a.pdf", b"%PDF-1.7 new", overwrite=True)
    assert (tmp_path / "a.pdf").read_bytes().endswith(b"new")
    (tmp_path / "b.png").write_bytes(b"not a picture")
    with pytest.raises(StoreError, match="did not write it"):
        write_bytes(tmp_path / "b.png", b"", overwrite=True)


def test_a_folder_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(StoreError, match="there is no folder") as caught:
        check_file(tmp_path / "no" / "page.html")
    assert caught.value.slug == "file-write"
    with pytest.raises(StoreError, match="cannot write"):
        check_file(tmp_path / ("x" * 300))
