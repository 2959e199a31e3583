//! The name of the host that a command can use.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;

use cellblock_artifact::ArtifactId;
use cellblock_sandbox::jail::protection::{Demands, Protection};

use crate::error::{Error, Result};
use crate::session_id::SessionId;

/// Returns the id of the host with this program, image and policy.
///
/// The program is known by its file, because hashing it takes longer than a run: a file that was
/// replaced has another number or time.
pub(crate) fn of(image: &str, demands: &Demands) -> Result<SessionId> {
    let program =
        std::fs::metadata("/proc/self/exe").map_err(Error::process("look at the program's file"))?;
    let mut text = format!(
        "{} {}:{} {} {}.{}\n{image}\n",
        env!("CARGO_PKG_VERSION"),
        program.dev(),
        program.ino(),
        program.size(),
        program.mtime(),
        program.mtime_nsec()
    );
    for protection in Protection::ALL {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{protection} {:?}", demands.of(protection));
    }
    let hash = ArtifactId::of(text.as_bytes()).to_string();
    Ok(hash[..SessionId::LENGTH].parse()?)
}

#[cfg(test)]
mod tests {
    use cellblock_sandbox::jail::protection::Demand;

    use super::*;

    #[test]
    fn a_key_depends_on_the_image_and_on_what_the_policy_demands() {
        let key = |image: &str, demands: &Demands| of(image, demands).unwrap();
        let default = Demands::default();
        assert_eq!(key("a", &default), key("a", &default));
        assert_ne!(key("a", &default), key("b", &default));
        assert_ne!(key("a", &default), key("a", &Demands::without_namespaces()));
        let spelled_out = Demands([(Protection::Seccomp, default.of(Protection::Seccomp))].into());
        assert_eq!(key("a", &default), key("a", &spelled_out));
        let weaker = Demands([(Protection::Seccomp, Demand::Degradable)].into());
        assert_ne!(key("a", &default), key("a", &weaker));
    }
}
