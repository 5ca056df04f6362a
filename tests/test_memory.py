"""How much memory is left: the least of machine, container and process."""

import resource
from pathlib import Path

import pytest

from isoscope import memory
from isoscope.memory import as_bytes, free_memory


def test_the_memory_there_is_can_be_bounded(monkeypatch):
    monkeypatch.setenv("ISOSCOPE_MEMORY", "123456")
    assert free_memory() == 123456


@pytest.mark.parametrize("nonsense", ["", "much", "-1"])
def test_a_bound_that_is_no_number_is_none(monkeypatch, nonsense):
    monkeypatch.setenv("ISOSCOPE_MEMORY", nonsense)
    assert free_memory() > 2**20


def test_a_container_and_its_cache_are_counted(monkeypatch, tmp_path):
    monkeypatch.delenv("ISOSCOPE_MEMORY", raising=False)
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("3000000\n")
    stat = "anon 9\nactive_file 400000\ninactive_file 600000\nfile_mapped 77\n"
    (tmp_path / "memory.stat").write_text(stat)
    assert free_memory() == 3_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory() > 3_000_000


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits need Linux")
def test_a_limit_of_the_process_is_counted(monkeypatch):
    monkeypatch.delenv("ISOSCOPE_MEMORY", raising=False)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = (used + 10 * 2**20, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _: limit)
    assert 0 <= free_memory() <= 10 * 2**20


def test_bytes_are_reported_in_two_sizes():
    assert as_bytes(2**20) == "1.0 MiB"
    assert as_bytes(2**31) == "2.0 GiB"
