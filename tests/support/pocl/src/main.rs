//! Prints the environment in which a process finds PoCL, a variable a line.

#![forbid(unsafe_code)]

fn main() {
    for (name, value) in pocl::environment() {
        println!("{name}={}", value.display());
    }
}
