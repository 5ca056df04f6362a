"""The command line: commands call one public function each and print what it returns.

Commands: `runs` (merge, read, report, figure, compare, check), `demo` and `list`; those of
experiments are derived from their registrations by `command`.
Machinery: `main` (the group, errors to exit codes), `command` (flags out of specs, help pages),
`config` (--config), `flags` (what several commands share), `output` (tables, remarks,
progress), `derive` (what `make derive` writes). Heavy imports stand inside functions.
"""
