"""What a norm dimension does: the output distribution without it."""
