"""The command line: commands call one public function each and print what it returns.

Commands: `check`, `compare`, `demo`, `list`, `pages` (report, figure) and `runs` (merge, read,
explain, dimensions); those of experiments are derived from their registrations by `command`.
Machinery: `main` (the group, errors to exit codes), `command` (flags out of specs, help pages),
`config` (--config), `flags` (what several commands share), `output` (tables, remarks,
progress), `derive` (what `make derive` writes). Heavy imports stand inside functions.
"""
