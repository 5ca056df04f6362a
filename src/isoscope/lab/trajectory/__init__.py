"""How anisotropy develops over the checkpoints of a model."""
