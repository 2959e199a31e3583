"""Running a cell: its source, its namespace, its streams, and the description of its failure."""
