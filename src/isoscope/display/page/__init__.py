"""The page as a whole: the panels of sections, packed into one HTML file."""
