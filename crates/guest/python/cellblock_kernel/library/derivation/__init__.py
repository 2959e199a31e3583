"""Emissions of cells under a contract: a result, figures, charts."""
