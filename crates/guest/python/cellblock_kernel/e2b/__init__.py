"""What sessions of the dialect E2B have in addition: its MIME types, and charts as data."""
