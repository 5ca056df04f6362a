"""Python's garbage collector rests while a command loads, and works when it computes."""

import subprocess
import sys


def test_no_garbage_is_looked_for_while_a_command_loads(place, environment):
    code = (
        "import gc, sys\n"
        "sys.argv = ['isoscope', 'measure', 'vectors.npy', '--json']\n"
        "before = gc.get_threshold()\n"
        "from isoscope.cli.main import main\n"
        "from isoscope.study import run\n"
        "done = []\n"
        "gc.callbacks.append(lambda phase, _: done.append(phase))\n"
        "opened = run._opened\n"
        "def opening(*all):\n"
        "    seen = done.count('stop'), gc.get_threshold() == before\n"
        "    print(*seen, file=sys.stderr)\n"
        "    return opened(*all)\n"
        "run._opened = opening\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={k: v for k, v in environment.items() if not k.startswith("COV")},
        capture_output=True,
        text=True,
        check=True,
    )
    times, usual = done.stderr.split()
    assert int(times) == 0
    assert usual == "True"
