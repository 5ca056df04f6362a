"""How fast and how large: ratios to the unavoidable matrix product, in one run.

    python bench/speed.py            all of it; about ten minutes
    python bench/speed.py measure    one part: measure, growth, cosine, twonn

Peers run in processes of their own, so that their memory is theirs; dadapy, which needs
NumPy below 2, in an environment of its own. Results go to bench/results/speed.json.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "speed.json"
D = 768
CHUNK = 8192
REPEATS = 3


def collection(path: Path, n: int) -> None:
    """Write n rows of decaying variance about a mean that is not zero."""
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, D))
    rng = np.random.default_rng(0)
    scale = (np.arange(1, D + 1) ** -0.5).astype(np.float32)
    mean = (0.05 * np.cos(np.arange(D))).astype(np.float32)
    for start in range(0, n, 50_000):
        part = out[start : start + 50_000]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32) * scale + mean
    out.flush()


def product(path: Path) -> float:
    """Return the seconds of one chunked float32 X'X pass over a file."""
    begin = time.perf_counter()
    rows = np.load(path, mmap_mode="r")
    total = np.zeros((D, D))
    for start in range(0, len(rows), CHUNK):
        block = np.asarray(rows[start : start + CHUNK])
        total += block.T @ block
    return time.perf_counter() - begin


def process(*command: str, env: dict | None = None) -> tuple[float, float, str]:
    """Run a command; return its seconds, its peak of anonymous memory in MiB, its output."""
    begin = time.perf_counter()
    job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    peak = 0

    def watch() -> None:
        nonlocal peak
        status = Path(f"/proc/{job.pid}/status")
        while job.poll() is None:
            try:
                lines = status.read_text().splitlines()
            except (FileNotFoundError, ProcessLookupError):
                return
            peak = max([peak, *(int(x.split()[1]) for x in lines if x.startswith("RssAnon"))])
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    output = job.communicate()[0]
    seconds = time.perf_counter() - begin
    watcher.join()
    if job.returncode:
        raise SystemExit(f"{command} ended with {job.returncode}")
    return seconds, peak / 1024, output


def isoscope(path: Path, *more: str) -> tuple[float, float]:
    """Return seconds and peak MiB of `isoscope measure FILE --json`."""
    command = Path(sys.executable).with_name("isoscope")
    seconds, peak, _ = process(str(command), "measure", str(path), "--json", *more)
    return seconds, peak


PEER = """
import sys, numpy as np, torch
from IsoScore.IsoScore import IsoScore
rows = torch.from_numpy(np.load(sys.argv[1]))
print(float(IsoScore(rows)))
"""


def row(name: str, limit: list[float], ours: list[float], **more: object) -> dict:
    """Return one line of the table: seconds and ratios, each pair back to back."""
    ratios = [b / a for a, b in zip(limit, ours, strict=True)]
    return {
        "name": name,
        "limit": [round(x, 3) for x in limit],
        "seconds": [round(x, 3) for x in ours],
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(x, 2) for x in ratios],
        **more,
    }


def measure(folder: Path) -> list[dict]:
    """The default set with intervals on a million rows, beside one product and the peer."""
    path = folder / "million.npy"
    collection(path, 1_000_000)
    product(path)  # so that the file is in memory for both
    limits, ours, peaks = [], [], []
    for _ in range(REPEATS):
        limits.append(product(path))
        seconds, peak = isoscope(path)
        ours.append(seconds)
        peaks.append(peak)
    out = [row("isoscope measure, 1,000,000 x 768", limits, ours, peak_mib=round(max(peaks)))]
    limit = product(path)
    seconds, peak, _ = process(sys.executable, "-c", PEER, str(path))
    out.append(row("PyPI IsoScore 2.0.1, one number", [limit], [seconds], peak_mib=round(peak)))
    limit, (seconds, peak) = product(path), isoscope(path, "-m", "mean-cosine")
    name = "isoscope measure -m mean-cosine"
    out.append(row(name, [limit], [seconds], peak_mib=round(peak)))
    return out


def growth(folder: Path) -> list[dict]:
    """Cost from ten thousand to a million rows."""
    out = []
    for n in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        path = folder / f"rows-{n}.npy"
        collection(path, n)
        limits, ours, peaks = [], [], []
        product(path)
        for _ in range(REPEATS):
            limits.append(product(path))
            seconds, peak = isoscope(path)
            ours.append(seconds)
            peaks.append(peak)
        path.unlink()
        out.append(
            row(f"isoscope measure, {n:,} x 768", limits, ours, peak_mib=round(max(peaks)))
        )
    return out


def cosine(_folder: Path) -> list[dict]:
    """Mean cosine of ten thousand rows: the closed form against all pairs."""
    from sklearn.metrics.pairwise import cosine_similarity

    from isoscope.measures import MEASURES
    from isoscope.study.lanes import run
    from isoscope.study.reading import kinds_for, read_survey
    from isoscope.types import Chunk

    rng = np.random.default_rng(1)
    rows = rng.standard_normal((10_000, D), dtype=np.float32)
    names = ["mean-cosine"]
    limits, ours, theirs = [], [], []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        total = (rows / np.linalg.norm(rows, axis=1)[:, None]).sum(axis=0)
        _ = (total @ total - len(rows)) / (len(rows) * (len(rows) - 1))
        limits.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        chunks = [Chunk(rows[i : i + 4096], "rows", i) for i in range(0, len(rows), 4096)]
        survey, _ = run(chunks, ("rows", "all"), kinds_for(names))
        read_survey(survey, names)
        ours.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        pairs = cosine_similarity(rows)
        _ = (pairs.sum() - len(rows)) / (len(rows) * (len(rows) - 1))
        theirs.append(time.perf_counter() - begin)
    assert MEASURES["mean-cosine"].default
    return [
        row("isoscope mean-cosine with interval, 10,000 x 768", limits, ours),
        row("scikit-learn cosine_similarity, 10,000 x 768", limits, theirs),
    ]


DADAPY = """
import sys, time, numpy as np
from dadapy import Data
rows = np.load(sys.argv[1])
begin = time.perf_counter()
data = Data(rows, maxk=3, n_jobs=2, verbose=False)
value = data.compute_id_2NN()[0]
print(time.perf_counter() - begin, value)
"""


def twonn(folder: Path) -> list[dict]:
    """TwoNN of ten thousand rows against the product X X' that it cannot do without."""
    from skdim.id import TwoNN

    from isoscope.measures.twonn import of_distances
    from isoscope.measures.view.neighbours import nearest

    rng = np.random.default_rng(2)
    scale = (np.arange(1, D + 1) ** -0.5).astype(np.float32)
    rows = rng.standard_normal((10_000, D), dtype=np.float32) * scale
    limits, ours, theirs = [], [], []
    value = peer = 0.0
    for _ in range(REPEATS):
        begin = time.perf_counter()
        for start in range(0, len(rows), 512):
            _ = rows[start : start + 512] @ rows.T
        limits.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        value = of_distances(nearest(rows, 2)[1])
        ours.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        peer = float(TwoNN().fit(rows).dimension_)
        theirs.append(time.perf_counter() - begin)
    out = [
        row("isoscope twonn, 10,000 x 768", limits, ours, value=round(value, 4)),
        row("scikit-dimension TwoNN", limits, theirs, value=round(peer, 4)),
    ]
    path = folder / "ten-thousand.npy"
    np.save(path, rows)
    python = dadapy_python()
    seconds = []
    for _ in range(REPEATS):
        _, _, text = process(str(python), "-c", DADAPY, str(path))
        took, value_text = text.split()
        seconds.append(float(took))
    out.append(row("dadapy 2NN, maxk=3", limits, seconds, value=round(float(value_text), 4)))
    return out


def dadapy_python() -> Path:
    """Return an interpreter that has dadapy, in an environment made once."""
    home = HERE.parent / ".venv" / "dadapy"  # beside our own, where no tool looks
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "-q", "install", "dadapy==0.3.4"], check=True)
        (home / "ready").touch()
    return python


PARTS = {"measure": measure, "growth": growth, "cosine": cosine, "twonn": twonn}


def machine() -> dict:
    """Return what the numbers depend on besides the code."""
    names = [
        x.split(":")[1].strip()
        for x in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in x
    ]
    return {
        "processor": names[0] if names else "unknown",
        "cores": os.cpu_count(),
        "numpy": np.__version__,
        "python": sys.version.split()[0],
        "load": [round(x, 2) for x in os.getloadavg()],
    }


def main() -> None:
    """Run the parts asked for and save what they found as it comes."""
    wanted = sys.argv[1:] or list(PARTS)
    RESULTS.parent.mkdir(exist_ok=True)
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            found[name] = {"machine": machine(), "rows": PARTS[name](Path(folder))}
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")
            for line in found[name]["rows"]:
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
