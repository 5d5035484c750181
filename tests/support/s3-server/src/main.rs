//! The server as a program, for clients in other languages.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use s3_server::{Options, Server, Shape, Tls};

/// An S3 server in memory, for tests and benches.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Address and port; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// Access key identifier that is accepted
    #[arg(long, default_value = "access")]
    access_key: String,
    /// Its secret
    #[arg(long, default_value = "secret")]
    secret_key: String,
    /// A bucket that exists from the start; may be given again
    #[arg(long = "bucket", value_name = "NAME")]
    buckets: Vec<String>,
    /// ETags are unique numbers instead of MD5 sums, which take longer than the transfer
    #[arg(long)]
    fast: bool,
    /// Time to the first byte of a response
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    latency_ms: f64,
    /// Megabytes per second of one connection, in each direction
    #[arg(long, value_name = "MB")]
    connection_mbps: Option<f64>,
    /// Megabytes per second of all connections together, in each direction
    #[arg(long, value_name = "MB")]
    total_mbps: Option<f64>,
    /// Speaks TLS, and writes the certificate that clients must trust to this file
    #[arg(long, value_name = "FILE")]
    tls_ca_out: Option<PathBuf>,
    /// The defect of the certificate
    #[arg(long, value_enum, default_value_t = Certificate::Valid, requires = "tls_ca_out")]
    certificate: Certificate,
    /// Threads that serve
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Certificate {
    /// Nothing
    Valid,
    /// Its time is over
    Expired,
    /// It is for another host
    WrongHost,
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    let tls = match arguments.certificate {
        Certificate::Valid => Tls::Valid,
        Certificate::Expired => Tls::Expired,
        Certificate::WrongHost => Tls::WrongHost,
    };
    let rate = |megabytes: Option<f64>| megabytes.map(|megabytes| (megabytes * 1e6) as u64);
    let server = Server::start(Options {
        access_key: arguments.access_key,
        secret_key: arguments.secret_key,
        buckets: arguments.buckets,
        fast: arguments.fast,
        tls: arguments.tls_ca_out.is_some().then_some(tls),
        listen: arguments.listen,
        shape: Shape {
            first_byte_latency: Duration::from_secs_f64(arguments.latency_ms / 1e3),
            bytes_per_second_per_connection: rate(arguments.connection_mbps),
            total_bytes_per_second: rate(arguments.total_mbps),
        },
        threads: arguments.threads,
        ..Options::default()
    })?;
    if let (Some(file), Some(pem)) = (&arguments.tls_ca_out, server.ca_pem()) {
        std::fs::write(file, pem)?;
    }
    let mut out = std::io::stdout();
    writeln!(out, "listening on {}", server.endpoint())?;
    out.flush()?;
    loop {
        std::thread::park();
    }
}
