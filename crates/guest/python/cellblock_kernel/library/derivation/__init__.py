"""What cells emit under a contract: a result, figures, charts."""
