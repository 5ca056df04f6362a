"""`python -m isoscope` is `isoscope`."""

from isoscope.cli.main import main

main()
