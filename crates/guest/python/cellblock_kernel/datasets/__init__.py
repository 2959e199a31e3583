"""Datasets of a project: publishing data frames whole, and loading equal ones."""
