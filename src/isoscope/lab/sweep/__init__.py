"""The regularisation sweep: fine-tune with a penalty at several weights and seeds."""
