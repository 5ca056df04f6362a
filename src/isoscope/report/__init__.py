"""Readings turned into something to look at; knows readings, not models."""

from isoscope.report.readings import Readings

__all__ = ["Readings"]
