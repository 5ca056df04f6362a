"""What Ray has no option for."""
