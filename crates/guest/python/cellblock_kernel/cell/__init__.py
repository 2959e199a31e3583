"""Running a cell: its source, its namespace, its streams, and how its failure is described."""
