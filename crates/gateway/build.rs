//! Builds again when the console's files change, which the macro that embeds them does not notice.

fn main() {
    println!("cargo::rerun-if-changed=console");
}
