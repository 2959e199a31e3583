//! Names that a kernel can bind, and reserved names.

/// Functions that a derivation cell calls.
pub const HELPERS: &[&str] = &[
    "align_timeseries",
    "derive_change_series",
    "render_chart",
    "safe_merge_timeseries",
    "save_figure",
    "set_result",
];

/// Other names that are bound before a cell runs.
pub const PRELUDE: &[&str] = &[
    "FuncFormatter",
    "alt",
    "cellblock",
    "connectors",
    "datetime",
    "display",
    "inputs",
    "list_datasets",
    "load_dataset",
    "np",
    "pd",
    "pl",
    "plt",
    "publish_dataset",
    "read_dataset",
    "read_excel",
    "read_pdf_text",
    "read_pptx_text",
    "sql",
    "timedelta",
    "timezone",
];

const KEYWORDS: &str = "False None True and as assert async await break class continue def del elif else \
                        except finally for from global if import in is lambda nonlocal not or pass raise \
                        return try while with yield";

/// Builtins that code calls or catches. Names with two leading underscores are rejected by their
/// form.
const BUILTINS: &str = "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup \
                        BlockingIOError BrokenPipeError BufferError BytesWarning ChildProcessError \
                        ConnectionAbortedError ConnectionError ConnectionRefusedError \
                        ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning \
                        EnvironmentError Exception ExceptionGroup FileExistsError FileNotFoundError \
                        FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning \
                        IndentationError IndexError InterruptedError IsADirectoryError KeyError \
                        KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError \
                        NotADirectoryError NotImplemented NotImplementedError OSError OverflowError \
                        PendingDeprecationWarning PermissionError ProcessLookupError \
                        PythonFinalizationError RecursionError ReferenceError ResourceWarning \
                        RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError \
                        SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError \
                        UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError \
                        UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning \
                        ZeroDivisionError abs aiter all anext any ascii bin bool breakpoint bytearray \
                        bytes callable chr classmethod compile complex copyright credits delattr dict dir \
                        divmod enumerate eval exec exit filter float format frozenset getattr globals \
                        hasattr hash help hex id input int isinstance issubclass iter len license list \
                        locals map max memoryview min next object oct open ord pow print property quit \
                        range repr reversed round set setattr slice sorted staticmethod str sum super \
                        tuple type vars zip";

/// Maximum number of characters of a name.
const LONGEST: usize = 128;

/// The reason why a name is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedReason {
    /// A keyword of Python, which cannot be a name at all.
    Keyword,
    /// A builtin, which code could no longer use.
    Builtin,
    /// One of [`HELPERS`].
    Helper,
    /// One of [`PRELUDE`], or a name with two leading underscores.
    Prelude,
}

impl ReservedReason {
    /// Describes the name, with an article.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Keyword => "a keyword of Python",
            Self::Builtin => "a builtin of Python",
            Self::Helper => "a helper of the kernel",
            Self::Prelude => "a name of the kernel",
        }
    }
}

/// Returns whether a name is a valid identifier: letters `a–z`, digits and underscores, no digit
/// first, at most 128 characters. Python also permits other letters, but normalizes some of them,
/// so that a name could be bound and not found.
pub fn is_identifier(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty()
        && name.len() <= LONGEST
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(word)
}

/// Returns why a name may not be bound to data.
pub fn reserved(name: &str) -> Option<ReservedReason> {
    let among = |names: &[&str]| names.contains(&name);
    let listed = |names: &str| names.split(' ').any(|listed| listed == name);
    if listed(KEYWORDS) {
        Some(ReservedReason::Keyword)
    } else if listed(BUILTINS) {
        Some(ReservedReason::Builtin)
    } else if among(HELPERS) {
        Some(ReservedReason::Helper)
    } else if among(PRELUDE) || name.starts_with("__") || name == "_" {
        Some(ReservedReason::Prelude)
    } else {
        None
    }
}
