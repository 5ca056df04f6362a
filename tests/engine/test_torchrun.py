"""torchrun: real ranks share the units, the first one merges, and only it speaks."""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from counting import CountSpec, SumSpec

from forks import Fork
from isoscope.cli.main import app
from isoscope.engine import Where, engine_for
from isoscope.engine.torchrun import Ranks
from isoscope.errors import EngineError
from isoscope.study.run import run
from isoscope.study.spec import Execution

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"
SCRIPT = """
import json, os, sys
import counting
from isoscope.study.run import run
from isoscope.study.spec import Execution
kind, options, where = (json.loads(each) for each in sys.argv[1:])
for _ in range(2 if os.environ.get("TWICE") else 1):
    found = run(getattr(counting, kind).of(**options), Execution(engine="torchrun", **where))
print(json.dumps([os.environ["RANK"], found]), flush=True)
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def torchrun(ranks, *words, **environment):
    """Start so many ranks; return exit code, stdout and stderr."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    command += ["--master-addr", "127.0.0.1", "--master-port", str(free_port()), *words]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SOURCES), str(HERE)]),
            "OMP_NUM_THREADS": "1",
            **environment,
        },
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


@pytest.fixture
def options(orders):
    return {"orders": str(orders), "units": 11, "stages": 2}


@pytest.fixture
def whole(options, tmp_path, orders):
    (tmp_path / "whole").mkdir()
    run(SumSpec.of(**options), Execution(output=str(tmp_path / "whole" / "run")))
    (orders / "log").unlink()
    return (tmp_path / "whole" / "run" / "state.safetensors").read_bytes()


def as_rank(rank, port, folder, work, *given):
    """Be a rank as torchrun starts it: its variables, and its streams as files."""
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / f"{name}-{rank}", os.O_WRONLY | os.O_CREAT), descriptor)
    with own_streams():
        work(*given)


@contextmanager
def own_streams():
    """Write to the streams of the process, not to those that pytest captures."""
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def forked_ranks(folder, work, *given):
    """Let two forks of this process be the ranks; return exit codes, stdout and stderr."""
    folder.mkdir()
    port = free_port()
    ranks = [Fork(as_rank, rank, port, folder, work, *given) for rank in range(2)]
    codes = [each.wait(120) for each in ranks]
    out, err = ([folder / f"{name}-{rank}" for rank in range(2)] for name in ("out", "err"))
    return codes, [each.read_text() for each in out], [each.read_text() for each in err]


def share(options, target):
    """Share units with the other rank, and print what both know at the end."""
    print(json.dumps(run(SumSpec.of(**options), Execution(output=target, engine="torchrun"))))


def test_two_forks_share_the_units_and_give_the_bytes_of_one_process(
    options, whole, tmp_path, log, order
):
    order("once-bug@1-3")  # a unit that fails is done again
    target = tmp_path / "run"
    codes, out, err = forked_ranks(tmp_path / "said", share, options, str(target))
    assert codes == [0, 0], err
    assert (target / "state.safetensors").read_bytes() == whole
    assert [json.loads(each) for each in out] == [[77, 77], [77, 77]]
    done = [where for _, _, where in log("end")]
    assert sorted(done) == sorted(f"{s}-{n}" for s in (1, 2) for n in range(11))
    assert len({pid for pid, *_ in log("end")}) == 2
    assert max(int(where[0]) for where in done[:11]) == 1  # the barrier between stages


def test_where_the_first_fork_fails_the_other_leaves_in_silence(tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n3,nan\n")
    words = ["measure", str(tmp_path / "rows.csv"), "--engine", "torchrun"]
    codes, out, (first, other) = forked_ranks(tmp_path / "said", app, words)
    assert codes == [2, 2] and out == ["", ""]
    assert first.count("error: ") == 1 and other == ""
    assert "Traceback" not in first


@pytest.mark.slow
def test_two_ranks_share_the_units_and_give_the_bytes_of_one_process(
    options, whole, tmp_path, script, log, order
):
    order("once-bug@1-3")  # a unit that fails is done again
    target = tmp_path / "run"
    words = [json.dumps(each) for each in ("SumSpec", options, {"output": str(target)})]
    code, out, err = torchrun(2, script, *words)
    assert code == 0, err
    assert (target / "state.safetensors").read_bytes() == whole
    found = sorted(json.loads(line) for line in out.splitlines())
    assert found == [["0", [77, 77]], ["1", [77, 77]]]  # both ranks know the results
    done = [where for _, _, where in log("end")]
    assert sorted(done) == sorted(f"{s}-{n}" for s in (1, 2) for n in range(11))
    assert len({pid for pid, *_ in log("end")}) == 2
    assert max(int(where[0]) for where in done[:11]) == 1  # the barrier between stages
    assert sorted(path.name for path in target.parent.iterdir()) == [
        "orders",
        "run",
        "script.py",
        "whole",
    ]


@pytest.mark.slow
def test_where_the_first_rank_fails_the_others_leave_in_silence(options, tmp_path, order):
    (tmp_path / "rows.csv").write_text("1,2\n3,nan\n")
    words = ["measure", str(tmp_path / "rows.csv"), "--engine", "torchrun"]
    code, out, err = torchrun(2, "-m", "isoscope", *words)
    assert code != 0 and out == ""
    assert err.count("error: row") == 1 or err.count("error: ") == 1, err
    assert "Traceback (most recent call last)" not in err.partition("torch/distributed")[0]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3])
def test_any_number_of_ranks_gives_the_same(options, whole, tmp_path, script, ranks):
    target = tmp_path / "run"
    words = [json.dumps(each) for each in ("SumSpec", options, {"output": str(target)})]
    code, _, err = torchrun(ranks, script, *words)
    assert code == 0, err
    assert (target / "state.safetensors").read_bytes() == whole


@pytest.mark.slow
def test_a_rank_that_is_killed_ends_the_job_and_another_engine_finishes_it(
    options, whole, tmp_path, script, order, log
):
    deadly = order("die@1-6")
    target = tmp_path / "run"
    words = [json.dumps(each) for each in ("SumSpec", options, {"output": str(target)})]
    code, _, _ = torchrun(2, script, *words)
    assert code != 0
    deadly.unlink()
    run(SumSpec.of(**options), Execution(output=str(target), engine="pool", workers=2))
    assert (target / "state.safetensors").read_bytes() == whole


@pytest.mark.slow
def test_records_and_two_jobs_in_one_script(orders, tmp_path, script):
    options = {"orders": str(orders), "units": 5}
    words = [json.dumps(each) for each in ("CountSpec", options, {})]
    code, out, err = torchrun(2, script, *words, TWICE="1")
    assert code == 0, err
    expected = json.loads(json.dumps(run(CountSpec.of(**options))))
    assert [json.loads(line)[1] for line in out.splitlines()] == [expected, expected]


@pytest.mark.parametrize(
    "environment",
    [{}, {"RANK": "0"}, {"RANK": "x", "WORLD_SIZE": "2"}, {"RANK": "2", "WORLD_SIZE": "2"}],
)
def test_what_torchrun_has_not_started_is_refused(monkeypatch, environment):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EngineError, match="expected RANK and WORLD_SIZE") as caught:
        engine_for(Where("torchrun"))
    assert caught.value.slug == "engine-rank"
    assert "torchrun --nproc-per-node 2 -m isoscope" in str(caught.value)


def test_another_number_of_workers_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert engine_for(Where("torchrun", 2)).ranks == Ranks(1, 2)
    with pytest.raises(EngineError, match="torchrun has started 2"):
        engine_for(Where("torchrun", 3))


def test_a_model_spread_over_devices_is_refused(monkeypatch, tiny, texts):
    import isoscope as iso

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(EngineError, match="every rank holds a whole model") as caught:
        iso.survey(tiny, engine="torchrun", device_map="auto")
    assert caught.value.slug == "engine-sharded"
    assert 'device_map="auto"' in str(caught.value)
