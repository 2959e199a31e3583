//! Names that no value may be bound to, because code means something else by them.

use super::error::{AliasError, NameFault};

/// Longest name.
pub const NAME_CHARS: usize = 128;

/// Python's keywords.
pub const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// What `dir(builtins)` lists in Python 3.13, without what begins with an underscore or is a keyword.
pub const BUILTINS: [&str; 147] = [
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BaseExceptionGroup",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "Ellipsis",
    "EncodingWarning",
    "EnvironmentError",
    "Exception",
    "ExceptionGroup",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "NotADirectoryError",
    "NotImplemented",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "PythonFinalizationError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "SystemExit",
    "TabError",
    "TimeoutError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
    "abs",
    "aiter",
    "all",
    "anext",
    "any",
    "ascii",
    "bin",
    "bool",
    "breakpoint",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "classmethod",
    "compile",
    "complex",
    "copyright",
    "credits",
    "delattr",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "eval",
    "exec",
    "exit",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "input",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "license",
    "list",
    "locals",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "property",
    "quit",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "setattr",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
];

/// What the preludes bind: libraries, helpers and `inputs`.
pub const PRELUDE: [&str; 22] = [
    "alt",
    "align_timeseries",
    "connectors",
    "datetime",
    "derive_change_series",
    "display",
    "FuncFormatter",
    "inputs",
    "load_dataset",
    "np",
    "pd",
    "pl",
    "plt",
    "read_excel",
    "read_pdf_text",
    "read_pptx_text",
    "render_chart",
    "safe_merge_timeseries",
    "save_figure",
    "set_result",
    "timedelta",
    "timezone",
];

/// Says whether a value may be bound to this name.
///
/// A name is an ASCII identifier, as Python takes two spellings of other letters for the same name, and does not begin
/// with an underscore.
pub fn check(name: &str) -> Result<(), AliasError> {
    let fault = if !is_identifier(name) {
        NameFault::NotAnIdentifier
    } else if KEYWORDS.contains(&name) {
        NameFault::Keyword
    } else if BUILTINS.contains(&name) {
        NameFault::Builtin
    } else if PRELUDE.contains(&name) {
        NameFault::Prelude
    } else {
        return Ok(());
    };
    Err(AliasError::name(name, fault))
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= NAME_CHARS
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_may_be_bound() {
        for name in ["a", "get_price_1", "Sales2024", "inputs_1", "type_1", "match"] {
            assert!(check(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn each_reserved_name_is_refused_with_what_it_is() {
        for (name, message) in [
            ("class", "`class` is a keyword of Python"),
            ("sum", "`sum` is a builtin of Python"),
            ("pd", "`pd` is what cells call a library or a helper"),
            ("1a", "`1a` is no name that can be bound"),
        ] {
            let error = check(name).expect_err(name).to_string();
            assert!(error.starts_with(message), "{error}");
        }
        for name in KEYWORDS.iter().chain(&BUILTINS).chain(&PRELUDE) {
            assert!(check(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_python_would_read_otherwise_is_no_name() {
        for name in ["", "_", "__name__", "a-b", "a b", "a\n", "ｐｄ", "né", "a.b"] {
            assert!(check(name).is_err(), "{name}");
        }
        assert!(check(&"a".repeat(NAME_CHARS)).is_ok());
        assert!(check(&"a".repeat(NAME_CHARS + 1)).is_err());
    }
}
