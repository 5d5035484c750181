//! `s3://` in TensorFlow, by this project's plugin and by the others.
//!
//! `cargo bench -p tf-plugin-s3-benches --bench s3 [-- OPTIONS]`:
//! `--write` puts tables and chart into `docs/`, `--quick` runs fewer rounds and only tenths of what takes
//! tensorflow-io minutes, `--only TEXT` runs the rows whose name contains a text, `--peers none` runs the plugin alone,
//! `--check` fails when a row needs more requests than its target, `--plugin PATH` takes a library that is built already,
//! `--before PATH` runs an earlier one in turns with it and compares them, `--rounds N` runs more rounds, which rows of
//! less than a millisecond need.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use s3_server::Shape;
use serde_json::json;
use tempfile::TempDir;
use tf_plugin_benches::report as document;
use tf_plugin_benches::worker::Worker;
use tf_plugin_s3_benches::clients::{Client, Clients};
use tf_plugin_s3_benches::figures::{Figures, Network, Sample};
use tf_plugin_s3_benches::report::Rest;
use tf_plugin_s3_benches::rows::{Part, ROWS, Row};
use tf_plugin_s3_benches::store::{SMALL_FILES, Store};
use tf_plugin_s3_benches::{chart, probes, report};

/// No operation takes longer, and tensorflow-io's longest takes half of it.
const DEADLINE: Duration = Duration::from_secs(600);

/// What a listing showed may be believed for a second: every operation begins without such knowledge.
const FORGET: Duration = Duration::from_millis(1100);

#[derive(Debug, Default)]
struct Options {
    write: bool,
    quick: bool,
    check: bool,
    alone: bool,
    only: String,
    plugin: Option<PathBuf>,
    before: Option<PathBuf>,
    rounds: Option<usize>,
}

impl Options {
    fn from_command_line() -> Result<Self> {
        let mut options = Self::default();
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // What cargo adds.
                "--bench" => {}
                "--write" => options.write = true,
                "--quick" => options.quick = true,
                "--check" => options.check = true,
                "--only" => options.only = arguments.next().context("`--only` needs a text")?,
                "--plugin" => {
                    options.plugin =
                        Some(arguments.next().context("`--plugin` needs a path")?.into());
                }
                "--before" => {
                    options.before =
                        Some(arguments.next().context("`--before` needs a path")?.into());
                }
                "--rounds" => {
                    let number = arguments.next().and_then(|text| text.parse().ok());
                    options.rounds = Some(number.context("`--rounds` needs a number")?);
                }
                "--peers" => match arguments.next().as_deref() {
                    Some("none") => options.alone = true,
                    Some("all") => options.alone = false,
                    _ => bail!("`--peers` is `none` or `all`"),
                },
                other => bail!(
                    "unknown argument `{other}`; there are `--write`, `--quick`, `--check`, `--only TEXT`, \
                     `--peers none|all`, `--rounds N`, `--plugin PATH` and `--before PATH`"
                ),
            }
        }
        let part =
            options.quick || options.alone || !options.only.is_empty() || options.rounds.is_some();
        let other = options.plugin.is_some() || options.before.is_some();
        ensure!(
            !options.write || !(part || other),
            "only a whole run is written; leave out `--quick`, `--only`, `--peers none`, `--rounds`, `--plugin` and `--before`"
        );
        Ok(options)
    }

    fn rounds(&self, network: Network) -> usize {
        self.rounds.unwrap_or(match (network, self.quick) {
            (Network::Loopback, false) => 5,
            (Network::Shaped, false) => 3,
            (Network::Loopback, true) => 2,
            (Network::Shaped, true) => 1,
        })
    }

    fn rows(&self) -> impl Iterator<Item = &'static Row> {
        let wanted = |row: &&Row| row.title.contains(&self.only) || row.run.contains(&self.only);
        ROWS.iter().filter(wanted)
    }
}

fn main() -> Result<()> {
    let options = Options::from_command_line()?;
    ensure!(options.rows().next().is_some(), "no row has `{}` in its name", options.only);
    let clients =
        Clients::provide(!options.alone, options.plugin.as_deref(), options.before.as_deref())?;
    let mut bench = Bench::start(&options, &clients)?;
    bench.compare_contents()?;
    for network in [Network::Loopback, Network::Shaped] {
        for round in 0..options.rounds(network) {
            for row in options.rows() {
                bench.round(row, network, round)?;
            }
        }
    }
    bench.memory()?;
    let rest = bench.rest()?;

    let text = report::markdown(&bench.figures, &rest);
    println!("{text}");
    if options.write {
        let picture = document::directory()?.join("s3-benchmarks.svg");
        fs::write(&picture, chart::svg(&bench.figures))?;
        let file = document::write_into("s3-benchmarks.md", "s3", &text)?;
        println!("written to {} and {}", file.display(), picture.display());
    }
    let failures = &bench.figures.failures;
    ensure!(failures.is_empty(), "failed:\n  {}", failures.join("\n  "));
    if options.check {
        let missed = report::missed_requests(&bench.figures);
        ensure!(missed.is_empty(), "too many requests:\n  {}", missed.join("\n  "));
    }
    Ok(())
}

struct Bench<'o> {
    options: &'o Options,
    clients: &'o Clients,
    store: Store,
    /// Files in memory, gone with the bench.
    files: TempDir,
    workers: BTreeMap<Client, Worker>,
    /// The number of the next directory that is written into.
    next_out: usize,
    /// The next small files that a client has not seen.
    next_small: BTreeMap<Client, u64>,
    figures: Figures,
}

impl<'o> Bench<'o> {
    fn start(options: &'o Options, clients: &'o Clients) -> Result<Self> {
        let in_memory = Path::new("/dev/shm");
        let directory = if in_memory.is_dir() { in_memory.to_owned() } else { env::temp_dir() };
        let files = tempfile::tempdir_in(&directory)
            .with_context(|| format!("cannot use {}", directory.display()))?;
        eprintln!("making the files");
        // A server without content, for a client that sends no requests.
        let empty = s3_server::Server::start(s3_server::Options::default())?;
        let mut memory = clients.worker(Client::Memory, &empty, files.path())?;
        memory.run("make_files", &json!({}), DEADLINE)?;
        let store = Store::start(files.path())?;
        let mut bench = Self {
            options,
            clients,
            store,
            files,
            workers: BTreeMap::from([(Client::Memory, memory)]),
            next_out: 0,
            next_small: BTreeMap::new(),
            figures: Figures::default(),
        };
        let ours = [Client::Plugin, Client::Before, Client::TensorflowIo];
        for client in ours.into_iter().chain(Client::OTHERS) {
            if clients.has(client) {
                bench.worker(client)?;
            }
        }
        Ok(bench)
    }

    /// The running process of a client; a new one if the last has failed.
    fn worker(&mut self, client: Client) -> Result<&mut Worker> {
        if !self.workers.contains_key(&client) {
            let worker = self.clients.worker(client, &self.store, self.files.path())?;
            self.workers.insert(client, worker);
        }
        self.workers.get_mut(&client).context("no worker")
    }

    /// All that read through TensorFlow must read the same bytes.
    fn compare_contents(&mut self) -> Result<()> {
        let mut expected = None;
        for client in [Client::Memory, Client::TensorflowIo, Client::Plugin, Client::Before] {
            if !self.clients.has(client) {
                continue;
            }
            let arguments = json!({ "part": Part::Whole.name() });
            let found = match self.worker(client)?.run("checksum", &arguments, DEADLINE) {
                Ok(found) => found.answer,
                Err(error) => {
                    self.failed(client, "checksum", &error);
                    continue;
                }
            };
            ensure!(
                *expected.get_or_insert(found) == found,
                "{} reads other bytes than were written",
                client.name()
            );
        }
        Ok(())
    }

    fn failed(&mut self, client: Client, run: &str, error: &anyhow::Error) {
        let line = format!("{}, {run}: {error:#}", client.name());
        eprintln!("{line}");
        self.figures.failures.push(line);
        self.workers.retain(|_, worker| worker.alive);
    }

    /// Every client that can do it runs a row once.
    fn round(&mut self, row: &'static Row, network: Network, round: usize) -> Result<()> {
        let mut order = vec![Client::Plugin, Client::Before, Client::TensorflowIo];
        order.extend(row.peers);
        if row.memory && network == Network::Loopback {
            order.push(Client::Memory);
        }
        // Each in another place in the next round.
        order.retain(|&client| self.clients.has(client));
        let first = round % order.len();
        order.rotate_left(first);
        for client in order {
            let slow = row.slow && client == Client::TensorflowIo && network == Network::Shaped;
            if slow && round > 0 {
                continue;
            }
            let part =
                if slow && row.parts && self.options.quick { Part::Tenth } else { Part::Whole };
            match self.measure(row, network, client, part) {
                Ok(sample) => {
                    show(row, network, client, &sample);
                    self.figures.add(row.run, network, client, sample);
                }
                Err(error) => self.failed(client, row.run, &error),
            }
        }
        Ok(())
    }

    fn measure(
        &mut self,
        row: &Row,
        network: Network,
        client: Client,
        part: Part,
    ) -> Result<Sample> {
        self.store.shape(Shape::default());
        self.next_out += 1;
        let out = format!("out/{}", self.next_out);
        let first = if row.uses_small_files() {
            let next = self.next_small.entry(client).or_default();
            let first = *next;
            *next += row.count;
            ensure!(*next <= SMALL_FILES, "more small files are needed");
            first
        } else {
            0
        };
        let arguments = row.arguments(part, first, &out);
        let in_memory = (client == Client::Memory).then(|| self.files.path().join(&out));
        match &in_memory {
            Some(directory) => fs::create_dir_all(directory)?,
            None => self.store.prepare(row, part, &out),
        }
        let worker = self.worker(client)?;
        if let Some(setup) = row.setup {
            let arguments = json!({ "out": out });
            worker.run(setup, &arguments, DEADLINE).with_context(|| format!("`{setup}`"))?;
        }
        let idle = self.worker(client)?.idle_since.elapsed();
        if matches!(client, Client::Plugin | Client::Before) {
            thread::sleep(FORGET.saturating_sub(idle));
        }
        if network == Network::Shaped {
            self.store.shape(Shape::s3());
        }
        // Requests up to here belong to no operation.
        let _ = self.store.take_counters();
        let answer = self.worker(client)?.run(row.run, &arguments, DEADLINE);
        let counters = self.store.take_counters();
        self.store.shape(Shape::default());
        let answer = answer?;
        ensure!(
            answer.answer == row.expected(part) as i64,
            "found {} instead of {}",
            answer.answer,
            row.expected(part)
        );
        match in_memory {
            Some(directory) => fs::remove_dir_all(directory)?,
            None => self.store.verify(row, &out)?,
        }

        // Of a tenth, ten times as much; of many operations, one.
        let factor = if part == Part::Tenth { 10.0 } else { 1.0 } / row.count as f64;
        let total: usize = counters.operations.values().sum();
        Ok(Sample {
            seconds: answer.seconds * factor,
            cpu: answer.cpu * factor,
            requests: total as f64 * factor,
            counts: counters.operations,
            sent: counters.bytes_in as f64 * factor,
            received: counters.bytes_out as f64 * factor,
            peak_in_flight: counters.peak_in_flight,
            scaled: part == Part::Tenth,
        })
    }

    /// The peak of the memory of reading rows, each in a process of its own: what an allocator keeps from earlier rows
    /// would hide it.
    fn memory(&mut self) -> Result<()> {
        let measured = [
            ("read_chunks", Network::Loopback),
            ("read_file", Network::Loopback),
            ("records", Network::Loopback),
            ("records_parallel", Network::Loopback),
            ("write_large", Network::Loopback),
            ("read_many", Network::Loopback),
            ("read_many", Network::Shaped),
        ];
        let wanted: Vec<&Row> = self.options.rows().collect();
        for (run, network) in measured {
            let Some(row) = wanted.iter().find(|row| row.run == run) else { continue };
            for client in [Client::Plugin, Client::TensorflowIo] {
                if !self.clients.has(client) {
                    continue;
                }
                self.next_out += 1;
                let out = format!("out/{}", self.next_out);
                let mut worker = self.clients.worker(client, &self.store, self.files.path())?;
                if network == Network::Shaped {
                    self.store.shape(Shape::s3());
                }
                let answer = worker.run(run, &row.arguments(Part::Whole, 0, &out), DEADLINE);
                self.store.shape(Shape::default());
                match answer {
                    Ok(answer) => {
                        let megabytes = answer.memory >> 20;
                        eprintln!(
                            "{:14} {run}: {megabytes} MiB at most ({network:?})",
                            client.id()
                        );
                        self.figures.memory.insert((row.run, network, client), answer.memory);
                        self.store.verify(row, &out)?;
                    }
                    Err(error) => {
                        let line = format!("{}, memory of {run}: {error:#}", client.name());
                        self.figures.failures.push(line);
                    }
                }
            }
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<Rest> {
        let mut rest = Rest::default();
        let size = |library: PathBuf| -> Result<u64> {
            let metadata = fs::metadata(&library);
            Ok(metadata.with_context(|| format!("no {}", library.display()))?.len())
        };
        let (plugin, peer) = self.clients.libraries();
        rest.libraries = (size(plugin.to_owned())?, peer.map(size).transpose()?);
        type Probe = fn(&Clients, Client, &Store) -> Result<probes::Outcome>;
        let all: [(&str, Probe); 2] = [
            ("end of a process that has used `s3://`", probes::exit),
            ("a forked child reads what its parent has read", probes::fork),
        ];
        let peer = self.clients.has(Client::TensorflowIo).then_some(Client::TensorflowIo);
        for (name, probe) in all {
            let mut run = |client: Client| match probe(self.clients, client, &self.store) {
                Ok(outcome) => Some(outcome),
                Err(error) => {
                    self.figures.failures.push(format!("{}, {name}: {error:#}", client.name()));
                    None
                }
            };
            if let Some(outcome) = run(Client::Plugin) {
                rest.processes.push((name, outcome, peer.and_then(run)));
            }
        }
        let used = |client: &Client| *client != Client::Memory;
        let workers = self.workers.iter().filter(|(client, _)| used(client));
        rest.versions = workers.map(|(_, worker)| worker.version.clone()).collect();
        Ok(rest)
    }
}

/// A line of progress, which is also the evidence for the tables.
fn show(row: &Row, network: Network, client: Client, sample: &Sample) {
    let counts: Vec<String> =
        sample.counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    eprintln!(
        "{:8} {:22} {:16} {:10.4} s, {:8.3} CPU s, {:6.1} MB sent, {:6.1} MB received, {:3} at a time: {}",
        format!("{network:?}").to_lowercase(),
        client.id(),
        row.run,
        sample.seconds,
        sample.cpu,
        sample.sent / 1e6,
        sample.received / 1e6,
        sample.peak_in_flight,
        counts.join(", ")
    );
}
