"""What the tests of engines share: a small spec, and drivers that are processes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from driving import log, order, orders, start

__all__ = ["log", "order", "orders", "start"]
