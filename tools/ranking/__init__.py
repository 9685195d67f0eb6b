"""Fits the weights of the ranking, and measures it: not shipped."""
