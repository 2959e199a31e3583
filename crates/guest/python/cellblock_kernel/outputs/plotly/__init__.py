"""Plotly figures, and approximate pictures of them: Plotly itself draws in browsers only."""
