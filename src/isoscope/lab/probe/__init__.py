"""How well one number of a model's state distinguishes two labels."""
