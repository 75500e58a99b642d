"""Figures: data in, Plotly figure out."""
