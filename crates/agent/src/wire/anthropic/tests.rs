//! Messages: requests that are read or rejected, and the events and messages of answers.
