"""The page as a whole: what sections give, packed into one HTML file."""
