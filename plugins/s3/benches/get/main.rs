//! A ranged GET by the plugin's client.
//!
//! `cargo bench -p tf-plugin-s3-benches --bench get [-- OPTIONS]`: `--write` puts the tables into `docs/`, `--quick` runs
//! fewer rounds. The server and the client are processes of their own, so that the client's CPU time is its own.
#![forbid(unsafe_code)]

use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use s3::Ranges;
use s3_server::{Options, Server, Tls};
use serde_json::{Value, json};
use tf_plugin_benches::report::{Table, write_into};
use tf_plugin_s3_benches::cell::seconds;
use tf_plugin_s3_benches::figures::Figure;
use tf_plugin_s3_benches::rows::MIB;
use tf_plugin_s3_tests::abi::{Ended, in_fork};

const URI: &str = "s3://bench/object";
const KEYS: (&str, &str) = ("measured", "measured-secret");
const OBJECT: u64 = 512 * MIB;
const RANGE: u64 = 8 * MIB;
const AT_ONCE: [u64; 4] = [1, 4, 16, 64];
/// Networks, in Gbit/s, for which it is said how many cores fill them.
const NETWORKS: [f64; 2] = [25.0, 100.0];

/// How often the bytes of a body are copied in the memory of the process, by construction.
const COPIES: [(&str, &str); 2] = [
    ("http", "none: the system writes into the buffer"),
    ("https", "2: decrypted in place → rustls' record → the buffer"),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).filter(|text| text != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        ["--serve", certificate] => serve(certificate),
        ["--measure", rounds] => measure(rounds.parse()?),
        ["--count", ranges] => count(ranges.parse()?),
        _ => compare(&arguments),
    }
}

/// Runs everything and shows it.
fn compare(arguments: &[&str]) -> Result<()> {
    let (mut write, mut rounds) = (false, 15);
    for argument in arguments {
        match *argument {
            "--write" => write = true,
            "--quick" => rounds = 3,
            other => bail!("unknown argument `{other}`; there are `--write` and `--quick`"),
        }
    }
    ensure!(!write || rounds > 3, "only a whole run is written; leave out `--quick`");
    let mut times = Table::new(&["connections", "at once", "CPU", "time"]);
    let mut work = Table::new(&["connections", "instructions per byte", "copies of a byte"]);
    let mut scaling = Table::new(&[
        "connections",
        "at once",
        "throughput",
        "CPU per GiB: user",
        "system",
        "cores for 25 Gbit/s",
        "100 Gbit/s",
    ]);
    let mut forks = Table::new(&["connections", "a new client", "the parent's client"]);
    for (scheme, copies) in COPIES {
        let server = ServerProcess::start(scheme == "https")?;
        let measured = server.client(&["--measure", &rounds.to_string()])?;
        let measured: Value = serde_json::from_str(&measured).context("no figures")?;
        for at_once in AT_ONCE {
            let figure = |what: &str| {
                let values = measured[at_once.to_string()][what].as_array();
                let values = values.into_iter().flatten().filter_map(Value::as_f64);
                Figure::of(values).context("figures are missing")
            };
            let mut row = vec![scheme.to_owned(), at_once.to_string()];
            for what in ["cpu", "wall"] {
                let figure = figure(what)?;
                let range = format!("{}–{}", seconds(figure.min), seconds(figure.max));
                row.push(format!("{} ({range})", seconds(figure.median)));
            }
            times.push(row);
            let (user, system) = (figure("user")?.median, figure("system")?.median);
            let mut row = vec![scheme.to_owned(), at_once.to_string()];
            row.push(format!("{:.1} GiB/s", 1.0 / figure("wall")?.median));
            row.extend([user, system].map(seconds));
            row.extend(NETWORKS.map(|gbits| {
                let gibs = gbits * 1e9 / 8.0 / (1024 * MIB) as f64;
                format!("{:.1}", gibs * (user + system))
            }));
            scaling.push(row);
        }
        // What one range more costs, so that neither start nor connection counts.
        let [few, many] = [2, 6].map(|ranges| server.instructions(ranges));
        let per_byte = (many? - few?) as f64 / (4 * RANGE) as f64;
        work.push([scheme.to_owned(), format!("{per_byte:.2}"), copies.to_owned()]);
        let fork = |kind: &str| measured[kind].as_str().unwrap_or("–").to_owned();
        forks.push([scheme.to_owned(), fork("reopened"), fork("kept")]);
    }
    let text = format!(
        "Per GiB, user and system time:\n\n{times}\nBy the number of requests:\n\n{scaling}\nWork:\n\n{work}\n\
         In a forked child, after the parent has used the client. The plugin creates a new client there in both cases:\n\n{forks}"
    );
    println!("{text}");
    if write {
        println!("written to {}", write_into("s3-benchmarks.md", "get", &text)?.display());
    }
    Ok(())
}

/// A server in a process of its own, which ends with this value.
struct ServerProcess {
    child: Child,
    endpoint: String,
    certificate: tempfile::NamedTempFile,
}

impl ServerProcess {
    fn start(tls: bool) -> Result<Self> {
        let certificate = tempfile::NamedTempFile::new()?;
        let file = if tls { certificate.path() } else { Path::new("") };
        let mut child = Command::new(env::current_exe()?)
            .arg("--serve")
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut endpoint = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut endpoint)?;
        ensure!(!endpoint.is_empty(), "the server does not start");
        Ok(Self { child, endpoint: endpoint.trim_end().to_owned(), certificate })
    }

    /// Leads a program to the server, and away from everything else.
    fn lead(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", "/nonexistent")
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_ACCESS_KEY_ID", KEYS.0)
            .env("AWS_SECRET_ACCESS_KEY", KEYS.1)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_EC2_METADATA_DISABLED", "true");
        if self.endpoint.starts_with("https") {
            command.env("AWS_CA_BUNDLE", self.certificate.path());
        }
    }

    /// What this program prints, run with these arguments as a client.
    fn client(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(env::current_exe()?);
        self.lead(command.args(arguments).stderr(Stdio::inherit()));
        let output = command.output()?;
        ensure!(output.status.success(), "the client failed: {}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The instructions of a client that reads so many ranges.
    fn instructions(&self, ranges: u64) -> Result<u64> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        command.arg(env::current_exe()?).args(["--count", &ranges.to_string()]);
        self.lead(&mut command);
        let output = command.output().context(
            "valgrind, which counts instructions, does not run; install it (Debian and Ubuntu: \
             `apt-get install valgrind`)",
        )?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "under valgrind the client failed:\n{text}");
        let line = text.lines().find_map(|line| line.split_once("Collected :"));
        let number = line.and_then(|(_, number)| number.trim().parse().ok());
        number.with_context(|| format!("valgrind counted nothing:\n{text}"))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It ends at the end of its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn serve(certificate: &str) -> Result<()> {
    let server = Server::start(Options {
        access_key: KEYS.0.into(),
        secret_key: KEYS.1.into(),
        buckets: vec!["bench".into()],
        fast: true,
        tls: (!certificate.is_empty()).then_some(Tls::Valid),
        ..Options::default()
    })?;
    if let Some(pem) = server.ca_pem() {
        std::fs::write(certificate, pem)?;
    }
    let object: Vec<u8> = (0..OBJECT).map(byte_at).collect();
    server.put("bench", "object", object);
    println!("{}", server.endpoint());
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// No two ranges have the same bytes.
fn byte_at(place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Measures the client and prints the figures.
fn measure(rounds: usize) -> Result<()> {
    let object = Ranges::open(URI)?;
    let mut buffers = vec![vec![0; RANGE as usize]; AT_ONCE[AT_ONCE.len() - 1] as usize];
    check(&object, &mut buffers[0])?;
    let mut figures = json!({});
    for _ in 0..rounds {
        for at_once in AT_ONCE {
            let ([user, system], wall) = one_round(&object, &mut buffers[..at_once as usize])?;
            let figures = &mut figures[at_once.to_string()];
            for (what, value) in
                [("cpu", user + system), ("user", user), ("system", system), ("wall", wall)]
            {
                let values = &mut figures[what];
                if values.is_null() {
                    *values = json!([]);
                }
                values.as_array_mut().context("a list")?.push(json!(value));
            }
        }
    }
    figures["reopened"] = json!(forked(|| Ranges::open(URI).map_err(anyhow::Error::from))?);
    figures["kept"] = json!(forked(|| Ok(&object))?);
    println!("{figures}");
    Ok(())
}

/// Reads the object once. Seconds of CPU time, user and system, and of wall for a GiB.
fn one_round(object: &Ranges, buffers: &mut [Vec<u8>]) -> Result<([f64; 2], f64)> {
    let at_once = buffers.len() as u64;
    let (start, before) = (Instant::now(), cpu_seconds()?);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once)
            .zip(buffers)
            .map(|(first, buffer)| {
                scope.spawn(move || {
                    let ranges = (first * RANGE..OBJECT).step_by((at_once * RANGE) as usize);
                    ranges.map(|start| object.read(start, buffer)).collect::<Result<Vec<_>, _>>()
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(read) => read.map(drop).map_err(anyhow::Error::from),
            Err(_) => bail!("a thread panicked"),
        })
    })?;
    let of_a_gib = 1024.0 * MIB as f64 / OBJECT as f64;
    let wall = start.elapsed().as_secs_f64();
    let after = cpu_seconds()?;
    Ok(([0, 1].map(|kind| (after[kind] - before[kind]) * of_a_gib), wall * of_a_gib))
}

/// Seconds that this process has used, user and system.
fn cpu_seconds() -> Result<[f64; 2]> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok([usage.user_time(), usage.system_time()]
        .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6))
}

fn check(object: &Ranges, buffer: &mut [u8]) -> Result<()> {
    let start = OBJECT - RANGE;
    object.read(start, buffer)?;
    let right = (start..).zip(&*buffer).all(|(place, &byte)| byte == byte_at(place));
    ensure!(right, "wrong bytes");
    Ok(())
}

/// How a read in a forked child ends.
fn forked<O: std::borrow::Borrow<Ranges>>(object: impl FnOnce() -> Result<O>) -> Result<String> {
    let work = || {
        let read = object().and_then(|object| check(object.borrow(), &mut vec![0; RANGE as usize]));
        read.map_or_else(|error| format!("{error:#}"), |()| "works".to_owned())
    };
    Ok(match in_fork(Duration::from_secs(5), work)? {
        (Ended::Answered(text), _) => text,
        (Ended::Hung, _) => "hangs".to_owned(),
        (other, _) => format!("{other:?}"),
    })
}

/// Reads some ranges, for counting instructions.
fn count(ranges: u64) -> Result<()> {
    let object = Ranges::open(URI)?;
    let mut buffer = vec![0; RANGE as usize];
    for range in 0..ranges {
        object.read(range * RANGE % OBJECT, &mut buffer)?;
    }
    Ok(())
}
