"""What the norms of a model hold, and what the final one does."""
