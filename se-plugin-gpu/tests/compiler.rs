//! What authors see from the compiler. `TRYBUILD=overwrite cargo test -p se-plugin-gpu --test compiler` writes the errors
//! on record; they are those of the Rust in `rust-toolchain.toml`, as `tests/ui` checks.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
