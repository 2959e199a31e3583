//! The probes once more for a user without privileges, whose sandboxes have no cgroups and no user id of their own.
