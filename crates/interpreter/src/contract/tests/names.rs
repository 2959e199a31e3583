//! Names that Python can bind, beside Python's own lists.

use std::process::Command;

use cellblock_testkit::{python313, require};

use crate::contract::{HELPERS, PRELUDE, ReservedReason, is_identifier, reserved};

#[test]
fn a_name_is_letters_digits_and_underscores() {
    for name in ["a", "_a", "A9_", &"x".repeat(128)] {
        assert!(is_identifier(name), "{name}");
    }
    for name in ["", "9a", "a-b", "a b", "größe", "a\n", "²", &"x".repeat(129)] {
        assert!(!is_identifier(name), "{name}");
    }
}

#[test]
fn a_taken_name_says_by_what() {
    for (name, taken) in [
        ("lambda", Some(ReservedReason::Keyword)),
        ("None", Some(ReservedReason::Keyword)),
        ("sum", Some(ReservedReason::Builtin)),
        ("ZeroDivisionError", Some(ReservedReason::Builtin)),
        ("set_result", Some(ReservedReason::Helper)),
        ("inputs", Some(ReservedReason::Prelude)),
        ("__name__", Some(ReservedReason::Prelude)),
        ("_", Some(ReservedReason::Prelude)),
        ("prices", None),
        ("", None),
        ("abs aiter", None),
    ] {
        assert_eq!(reserved(name), taken, "{name}");
    }
    assert!(
        HELPERS
            .iter()
            .all(|name| reserved(name) == Some(ReservedReason::Helper))
    );
    assert!(
        PRELUDE
            .iter()
            .all(|name| reserved(name) == Some(ReservedReason::Prelude))
    );
}

#[test]
fn every_keyword_and_builtin_of_python_is_taken() {
    require!(Python313);
    let script = "import builtins, keyword; print(*keyword.kwlist, *dir(builtins))";
    let python = Command::new(python313().unwrap())
        .args(["-I", "-c", script])
        .output()
        .unwrap();
    let names = String::from_utf8(python.stdout).unwrap();
    assert!(names.split_whitespace().count() > 150, "{names}");
    // Names with one leading underscore are the interpreter's own, and no code uses them.
    let public = names.split_whitespace().filter(|name| !name.starts_with('_'));
    let free: Vec<_> = public.filter(|name| reserved(name).is_none()).collect();
    assert_eq!(free, [""; 0]);
}
