//! Exports the functions that replace TensorFlow's to the plugins that the tool loads.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-rdynamic");
}
