"""The small models of many families, for every test of capture."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
