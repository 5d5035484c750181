//! Prints the environment in which a process finds lavapipe, a variable a line.

#![forbid(unsafe_code)]

fn main() {
    for (name, value) in lavapipe::driver() {
        println!("{name}={}", value.display());
    }
}
