//! What can my store do? Probes it with objects below the given name that are deleted afterwards.
//!
//! ```sh
//! cargo run --package s3 --example probe -- s3://bucket/prefix
//! ```
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(uri), None) = (arguments.next(), arguments.next()) else {
        eprintln!(
            "usage: probe s3://bucket/prefix    settings as for the plugin, see CONFIGURATION.md"
        );
        return ExitCode::from(2);
    };
    let probed = match s3::probe(&uri) {
        Ok(probed) => probed,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    println!("The store of {uri}:");
    for (name, observed) in probed.rows() {
        println!("  {:<50} {observed}", name.replace('`', ""));
    }
    println!(
        "What s3:// promises there (kept: by the store; looked for: by HeadObject, see SEMANTICS.md):"
    );
    for (name, guarantee) in probed.guarantees() {
        println!("  {name:<50} {guarantee}");
    }
    println!("Settings that say so, which the plugin otherwise finds out by itself:");
    for (key, value) in probed.settings() {
        println!("  export TF_S3_{}={value}", key.to_uppercase());
    }
    ExitCode::SUCCESS
}
