//! The program of the library, which is compiled while the crates that it needs are.

fn main() -> std::process::ExitCode {
    cellblock::main()
}
