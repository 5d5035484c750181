//! What can my store do? Asks it, with objects below the given name that are deleted afterwards.
//!
//! ```sh
//! cargo run --package s3 --example ask -- s3://bucket/prefix
//! ```
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(uri), None) = (arguments.next(), arguments.next()) else {
        eprintln!(
            "usage: ask s3://bucket/prefix    settings as for the plugin, see CONFIGURATION.md"
        );
        return ExitCode::from(2);
    };
    let abilities = match s3::ask(&uri) {
        Ok(abilities) => abilities,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    println!("The store of {uri}:");
    for (name, ability) in abilities.rows() {
        println!("  {:<50} {ability}", name.replace('`', ""));
    }
    println!(
        "What s3:// promises there (kept: by the store; looked for: by HeadObject, see SEMANTICS.md):"
    );
    for (name, guarantee) in abilities.guarantees() {
        println!("  {name:<50} {guarantee}");
    }
    println!("Settings that say so, which the plugin otherwise finds out by itself:");
    for (key, value) in abilities.settings() {
        println!("  export TF_S3_{}={value}", key.to_uppercase());
    }
    ExitCode::SUCCESS
}
