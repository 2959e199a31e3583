//! Two sandboxes at once: what one leaves, the other does not find, though a second process in the same sandbox does.
