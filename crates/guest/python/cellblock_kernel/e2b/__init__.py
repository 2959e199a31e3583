"""What sessions of the dialect E2B have in addition: values in its MIME types, charts as data, and several contexts in one kernel."""
