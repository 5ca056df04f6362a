"""The papers' experiments, a folder each: spec, worker, results, section and registration.

The `__init__.py` of a folder registers the experiment; nothing else has to know of it.
"""
