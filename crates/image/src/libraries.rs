//! System libraries that an image needs and this machine lacks.

use std::path::{Path, PathBuf};

use crate::Manifest;

/// Beginnings of the names of libraries for modules that kernels do not need (readline, curses,
/// dbm, nis, sqlite3 and uuid), and of one that Pillow loads only where it is installed, for text
/// from right to left.
const OPTIONAL: [&str; 18] = [
    "libcom_err.",
    "libdb-",
    "libfribidi.",
    "libgdbm",
    "libgssapi_krb5.",
    "libk5crypto.",
    "libkeyutils.",
    "libkrb5",
    "libncurses",
    "libnsl.",
    "libpanel",
    "libreadline.",
    "libresolv.",
    "libsqlite3.",
    "libtcl",
    "libtinfo.",
    "libtirpc.",
    "libuuid.",
];

/// Debian packages whose names do not follow from those of their libraries.
const PACKAGES: [(&str, &str); 12] = [
    ("libbz2.so.1.0", "libbz2-1.0"),
    ("libcrypto.so.1.1", "libssl1.1"),
    ("libcrypto.so.3", "libssl3"),
    ("libdb-5.3.so", "libdb5.3"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libgdbm_compat.so.4", "libgdbm-compat4"),
    ("libpanelw.so.6", "libncursesw6"),
    ("libsqlite3.so.0", "libsqlite3-0"),
    ("libtirpc.so.3", "libtirpc3"),
    ("libX11.so.6", "libx11-6"),
    ("libz.so.1", "zlib1g"),
    ("libzstd.so.1", "libzstd1"),
];

/// Libraries of every system with glibc.
const EVERYWHERE: [&str; 8] = [
    "ld-linux-",
    "libc.so.",
    "libdl.so.",
    "libm.so.",
    "libpthread.so.",
    "librt.so.",
    "libutil.so.",
    "libstdc++.so.",
];

/// Libraries that a machine lacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MissingLibraries<'a> {
    /// Without these no kernel starts.
    pub(crate) needed: Vec<&'a str>,
    /// Without these some modules cannot be imported, or lack functions.
    pub(crate) optional: Vec<&'a str>,
}

impl<'a> MissingLibraries<'a> {
    /// Compares an image with the library folders of this machine.
    pub(crate) fn of(manifest: &'a Manifest) -> Self {
        let is_here = |name: &str| find_library(&manifest.machine, name).is_some();
        let missing = manifest
            .system_libraries
            .iter()
            .map(String::as_str)
            .filter(|it| !is_here(it));
        let (optional, needed) = split(missing);
        Self { needed, optional }
    }
}

/// Finds a library where systems for this machine, such as `x86_64`, have them.
pub fn find_library(machine: &str, name: &str) -> Option<PathBuf> {
    let folders = [
        format!("/usr/lib/{machine}-linux-gnu"),
        format!("/lib/{machine}-linux-gnu"),
        "/usr/lib64".to_owned(),
        "/lib64".to_owned(),
        "/usr/lib".to_owned(),
        "/lib".to_owned(),
    ];
    let paths = folders.iter().map(|folder| Path::new(folder).join(name));
    paths.into_iter().find(|path| path.exists())
}

/// Returns the libraries that kernels do not need, and the others.
fn split<'a>(names: impl Iterator<Item = &'a str>) -> (Vec<&'a str>, Vec<&'a str>) {
    names.partition(|name| OPTIONAL.iter().any(|it| name.starts_with(it)))
}

/// Returns the libraries that a system may lack.
pub(crate) fn uncommon(manifest: &Manifest) -> Vec<&str> {
    let names = manifest.system_libraries.iter().map(String::as_str);
    names
        .filter(|name| !EVERYWHERE.iter().any(|it| name.starts_with(it)))
        .collect()
}

/// Lists libraries with the Debian packages that contain them.
pub(crate) fn described(names: &[&str]) -> String {
    let mut packages: Vec<_> = names.iter().map(|it| debian_package(it)).collect();
    packages.sort();
    packages.dedup();
    format!(
        "{} (on Debian and Ubuntu: apt-get install {})",
        names
            .iter()
            .map(|it| it.escape_debug().to_string())
            .collect::<Vec<_>>()
            .join(", "),
        packages.join(" ")
    )
}

fn debian_package(library: &str) -> String {
    if let Some((_, package)) = PACKAGES.iter().find(|it| it.0 == library) {
        return (*package).to_owned();
    }
    // Debian's rule: the name, a dash if it ends in a digit, and the version.
    let (name, version) = library.split_once(".so").unwrap_or((library, ""));
    let dash = if name.ends_with(|it: char| it.is_ascii_digit()) {
        "-"
    } else {
        ""
    };
    let version = version.trim_start_matches('.');
    format!("{name}{dash}{version}")
        .to_ascii_lowercase()
        .replace('_', "-")
        .escape_debug()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_listed_with_their_debian_packages() {
        let text = described(&["libcrypto.so.3", "libffi.so.8", "libssl.so.3", "libz.so.1"]);
        assert_eq!(
            text,
            "libcrypto.so.3, libffi.so.8, libssl.so.3, libz.so.1 \
             (on Debian and Ubuntu: apt-get install libffi8 libssl3 zlib1g)"
        );
    }

    #[test]
    fn a_library_that_is_used_only_where_it_is_installed_stops_no_kernel() {
        let (optional, needed) = split(["libfribidi.so.0", "libssl.so.3", "libtinfo.so.6"].into_iter());
        assert_eq!(optional, ["libfribidi.so.0", "libtinfo.so.6"]);
        assert_eq!(needed, ["libssl.so.3"]);
    }
}
