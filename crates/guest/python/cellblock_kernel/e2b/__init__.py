"""What sessions of the dialect E2B have in addition: its MIME types, charts as data, and several contexts in one kernel."""
