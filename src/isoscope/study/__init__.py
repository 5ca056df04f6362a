"""The road of the work: a spec, its plan, units, workers, and the run that they fill."""
