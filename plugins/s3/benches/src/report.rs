//! The tables of the document, and which targets are met.

use std::fmt::Write as _;
use std::fs;

use tf_plugin_benches::build;
use tf_plugin_benches::report::Table;

use crate::cell::{Cell, NOTHING, count, ratio, seconds};
use crate::clients::Client;
use crate::figures::{Figures, Network, Sample};
use crate::probes::Outcome;
use crate::rows::{MIB, ROWS, Row, Unshaped};

/// The row of many files at once, whose memory is bounded.
const MANY: &str = "read_many";

/// The most memory above the base while many files are read: the plugin's budget and 64 MiB.
const MEMORY: u64 = (256 + 64) * MIB;

/// How much slower than tensorflow-io a row may be: a single request takes both as long.
const AS_FAST: f64 = 1.05;

/// The largest library, in bytes.
const LIBRARY: u64 = 13_000_000;

/// What is not a row.
#[derive(Clone, Debug, Default)]
pub struct Rest {
    /// Name, the plugin's outcome, tensorflow-io's.
    pub processes: Vec<(&'static str, Outcome, Option<Outcome>)>,
    /// Bytes of the libraries: the plugin's, tensorflow-io's.
    pub libraries: (u64, Option<u64>),
    /// The clients' own names and versions.
    pub versions: Vec<String>,
}

/// Everything that the bench found, as Markdown.
#[must_use]
pub fn markdown(figures: &Figures, rest: &Rest) -> String {
    let mut text = format!(
        "Shaped: 30 ms to the first byte of each response, 80 MB/s for each connection in each direction:\n\n{}\n",
        shaped(figures)
    );
    let mut section = |title: &str, table: &Table| {
        // Writing into a string does not fail.
        let _ = writeln!(text, "{title}:\n\n{table}");
    };
    section("Unshaped, compared with the same TensorFlow on files in memory", &loopback(figures));
    let earlier = earlier(figures);
    if let Some(table) = &earlier {
        section("Compared with the earlier library, in turns", table);
    }
    section("Bytes sent", &sent(figures));
    section("Requests of this plugin by S3 operation, shaped", &operations(figures));
    section("CPU time of the client, user and system, unshaped", &cpu(figures));
    section(
        "Peak memory, in addition to that of a new process after its imports",
        &memory(figures),
    );
    section("Processes", &processes(rest));
    let _ =
        writeln!(text, "{} · {} · {}", rest.versions.join(" · "), build::rust_version(), machine());
    text
}

/// The CPU, its cores and the memory of this machine.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total =
        info.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
    let total: f64 = total.and_then(|kib| kib.parse().ok()).unwrap_or_default();
    format!("{}, {cores} cores, {:.0} GiB", build::cpu_model(), total / f64::from(1 << 20))
}

fn best_peer(figures: &Figures, row: &Row, network: Network) -> String {
    let medians = row
        .peers
        .iter()
        .filter_map(|&peer| Some((peer, Cell::of(figures, row, network, peer).median()?)));
    let best = medians.min_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map_or(NOTHING.into(), |(peer, median)| format!("{}, {}", seconds(median), peer.name()))
}

/// Whether a count of requests, which may be a mean, keeps to a target.
fn keeps(requests: f64, target: f64) -> bool {
    (requests * 10.0).round() <= target * 10.0
}

/// The rows, in words, whose count of requests misses its target in any round.
#[must_use]
pub fn missed_requests(figures: &Figures) -> Vec<String> {
    let mut missed = Vec::new();
    for row in ROWS {
        for network in [Network::Loopback, Network::Shaped] {
            let cell = Cell::of(figures, row, network, Client::Plugin);
            if let (Some(target), Some(requests)) = (row.target.requests, cell.requests())
                && !keeps(requests, target)
            {
                let network = if network == Network::Shaped { "shaped" } else { "loopback" };
                missed.push(format!(
                    "{} ({network}): {} requests, target {}",
                    row.title,
                    count(requests),
                    count(target)
                ));
            }
        }
    }
    missed
}

/// A check that is listed only if it fails.
fn slower(plugin: &Cell<'_>, peer: &Cell<'_>) -> Option<(&'static str, bool)> {
    let slower = plugin.median()? > peer.median()? * AS_FAST;
    slower.then_some(("slower than tensorflow-io", false))
}

fn verdict(checks: &[(&str, bool)]) -> String {
    let missed: Vec<&str> = checks.iter().filter(|(_, met)| !met).map(|(name, _)| *name).collect();
    match (checks.is_empty(), missed.is_empty()) {
        (true, _) => NOTHING.into(),
        (_, true) => "yes".into(),
        _ => format!("**no** ({})", missed.join(", ")),
    }
}

fn shaped(figures: &Figures) -> Table {
    let mut table = Table::new(&[
        "operation",
        "this plugin",
        "tensorflow-io",
        "ratio",
        "best other client",
        "requests: this plugin / tensorflow-io",
        "target",
        "met",
    ]);
    for row in ROWS {
        let network = Network::Shaped;
        let plugin = Cell::of(figures, row, network, Client::Plugin);
        let peer = Cell::of(figures, row, network, Client::TensorflowIo);
        if plugin.samples.is_empty() && peer.samples.is_empty() {
            continue;
        }
        let (mut wanted, mut checks) = (Vec::new(), Vec::new());
        if let (Some(target), Some(median)) = (row.target.shaped, plugin.median()) {
            wanted.push(format!("≤ {}", seconds(target)));
            checks.push(("time", median <= target));
        }
        if let (Some(target), Some(requests)) = (row.target.requests, plugin.requests()) {
            let noun = if target == 1.0 { "request" } else { "requests" };
            wanted.push(format!("≤ {} {noun}", count(target)));
            checks.push(("requests", keeps(requests, target)));
        }
        checks.extend(slower(&plugin, &peer));
        table.push([
            row.title.to_owned(),
            plugin.time(),
            peer.time(),
            ratio(&plugin, &peer),
            best_peer(figures, row, network),
            format!("{} / {}", plugin.requests_text(), peer.requests_text()),
            if wanted.is_empty() { NOTHING.into() } else { wanted.join(", ") },
            verdict(&checks),
        ]);
    }
    table
}

/// Times, CPU time and requests of both libraries, if an earlier one ran.
fn earlier(figures: &Figures) -> Option<Table> {
    let mut table = Table::new(&[
        "operation",
        "network",
        "this plugin",
        "before",
        "time",
        "CPU",
        "requests: this plugin / before",
    ]);
    let mut any = false;
    for network in [Network::Shaped, Network::Loopback] {
        for row in ROWS {
            let [plugin, before] = [Client::Plugin, Client::Before]
                .map(|client| Cell::of(figures, row, network, client));
            let of_before = |of: fn(&Sample) -> f64| {
                let ratio = plugin.figure(of).zip(before.figure(of));
                ratio.map_or(NOTHING.into(), |(plugin, before)| {
                    format!("{:.2}", plugin.median / before.median)
                })
            };
            if before.samples.is_empty() {
                continue;
            }
            any = true;
            table.push([
                row.title.to_owned(),
                format!("{network:?}").to_lowercase(),
                plugin.time(),
                before.time(),
                of_before(|sample| sample.seconds),
                of_before(|sample| sample.cpu),
                format!("{} / {}", plugin.requests_text(), before.requests_text()),
            ]);
        }
    }
    any.then_some(table)
}

fn loopback(figures: &Figures) -> Table {
    let mut table = Table::new(&[
        "operation",
        "this plugin",
        "tensorflow-io",
        "ratio",
        "files in memory",
        "relative to memory",
        "best other client",
        "target",
        "met",
    ]);
    for row in ROWS {
        let network = Network::Loopback;
        let plugin = Cell::of(figures, row, network, Client::Plugin);
        let peer = Cell::of(figures, row, network, Client::TensorflowIo);
        let memory = Cell::of(figures, row, network, Client::Memory);
        if plugin.samples.is_empty() && peer.samples.is_empty() {
            continue;
        }
        let part = plugin.median().zip(memory.median()).map(|(plugin, memory)| memory / plugin);
        let (wanted, mut checks) = match (row.target.unshaped, plugin.median(), part) {
            (Some(Unshaped::OfMemory(target)), _, Some(part)) => {
                (format!("≥ {target:.2}"), vec![("speed", part >= target)])
            }
            (Some(Unshaped::Seconds(target)), Some(median), _) => {
                (format!("≤ {}", seconds(target)), vec![("time", median <= target)])
            }
            _ => (NOTHING.into(), vec![]),
        };
        checks.extend(slower(&plugin, &peer));
        table.push([
            row.title.to_owned(),
            plugin.time(),
            peer.time(),
            ratio(&plugin, &peer),
            memory.time(),
            part.map_or(NOTHING.into(), |part| format!("{part:.2}")),
            best_peer(figures, row, network),
            wanted,
            verdict(&checks),
        ]);
    }
    table
}

fn megabytes(bytes: f64) -> String {
    match bytes / 1e6 {
        value if value < 9.95 => format!("{value:.1} MB"),
        value => format!("{value:.0} MB"),
    }
}

fn sent(figures: &Figures) -> Table {
    let mut table =
        Table::new(&["operation", "this plugin", "tensorflow-io", "requests", "target", "met"]);
    for row in ROWS.iter().filter(|row| row.target.sent.is_some()) {
        let network = Network::Shaped;
        let plugin = Cell::of(figures, row, network, Client::Plugin);
        let peer = Cell::of(figures, row, network, Client::TensorflowIo);
        let bytes = |cell: &Cell<'_>| Some(cell.figure(|sample| sample.sent)?.max);
        let text = |cell: &Cell<'_>| bytes(cell).map_or(NOTHING.into(), megabytes);
        let target = row.target.sent.unwrap_or_default() as f64;
        let checks: Vec<(&str, bool)> =
            bytes(&plugin).map(|bytes| ("bytes", bytes <= target)).into_iter().collect();
        if plugin.samples.is_empty() && peer.samples.is_empty() {
            continue;
        }
        table.push([
            row.title.to_owned(),
            text(&plugin),
            text(&peer),
            format!("{} / {}", plugin.requests_text(), peer.requests_text()),
            format!("≤ {}", megabytes(target)),
            verdict(&checks),
        ]);
    }
    table
}

fn operations(figures: &Figures) -> Table {
    let mut table = Table::new(&["operation", "requests in one round", "at a time"]);
    for row in ROWS {
        let samples = figures.samples(row.run, Network::Shaped, Client::Plugin);
        let Some(sample) = samples.last() else { continue };
        let parts: Vec<String> =
            sample.counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let times = if row.count > 1 { format!(", {} times", row.count) } else { String::new() };
        table.push([
            format!("{}{times}", row.title),
            if parts.is_empty() { "none".to_owned() } else { parts.join(", ") },
            sample.peak_in_flight.to_string(),
        ]);
    }
    table
}

fn cpu(figures: &Figures) -> Table {
    let clients = [Client::Plugin, Client::TensorflowIo, Client::Memory];
    let mut table = Table::new(&["operation", "this plugin", "tensorflow-io", "files in memory"]);
    for row in ROWS.iter().filter(|row| row.memory && row.count == 1) {
        let cells = clients.map(|client| {
            let cell = Cell::of(figures, row, Network::Loopback, client);
            cell.figure(|sample| sample.cpu).map_or(NOTHING.into(), |cpu| seconds(cpu.median))
        });
        if cells.iter().any(|cell| cell != NOTHING) {
            table.push([row.title.to_owned()].into_iter().chain(cells));
        }
    }
    table
}

fn memory(figures: &Figures) -> Table {
    let mut table = Table::new(&["operation", "this plugin", "tensorflow-io", "target", "met"]);
    for row in ROWS {
        for network in [Network::Loopback, Network::Shaped] {
            let bytes = |client| figures.memory.get(&(row.run, network, client)).copied();
            let text = |client| {
                bytes(client).map_or(NOTHING.into(), |bytes| format!("{} MiB", bytes / MIB))
            };
            let (plugin, peer) = (text(Client::Plugin), text(Client::TensorflowIo));
            if plugin == NOTHING && peer == NOTHING {
                continue;
            }
            let bounded = row.run == MANY;
            let met =
                bytes(Client::Plugin).filter(|_| bounded).map(|bytes| ("memory", bytes <= MEMORY));
            let shaped = if network == Network::Shaped { ", shaped" } else { "" };
            table.push([
                format!("{}{shaped}", row.title),
                plugin,
                peer,
                if bounded { format!("≤ {} MiB", MEMORY / MIB) } else { NOTHING.into() },
                verdict(met.as_slice()),
            ]);
        }
    }
    table
}

fn processes(rest: &Rest) -> Table {
    let mut table = Table::new(&["what", "this plugin", "tensorflow-io", "target", "met"]);
    for (name, plugin, peer) in &rest.processes {
        let text = |outcome: &Outcome| format!("{}, {}", outcome.text, seconds(outcome.seconds));
        table.push([
            (*name).to_owned(),
            text(plugin),
            peer.as_ref().map_or(NOTHING.into(), text),
            "clean".to_owned(),
            verdict(&[("outcome", plugin.good)]),
        ]);
    }
    let (plugin, peer) = rest.libraries;
    table.push([
        "size of the library".to_owned(),
        megabytes(plugin as f64),
        peer.map_or(NOTHING.into(), |bytes| megabytes(bytes as f64)),
        format!("≤ {}", megabytes(LIBRARY as f64)),
        verdict(&[("size", plugin <= LIBRARY)]),
    ]);
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sample(seconds: f64, requests: f64) -> Sample {
        Sample {
            seconds,
            cpu: 0.0,
            counts: BTreeMap::new(),
            requests,
            sent: 0.0,
            received: 0.0,
            peak_in_flight: 1,
            scaled: false,
        }
    }

    #[test]
    fn a_row_with_too_many_requests_is_missed_in_any_round() {
        let mut figures = Figures::default();
        figures.add("glob", Network::Shaped, Client::Plugin, sample(0.2, 5.0));
        assert!(missed_requests(&figures).is_empty());
        figures.add("glob", Network::Shaped, Client::Plugin, sample(0.2, 6.0));
        figures.add("glob", Network::Shaped, Client::Plugin, sample(0.2, 5.0));
        let missed = missed_requests(&figures);
        assert_eq!(missed, ["`glob` `*`, 5,000 objects (shaped): 6 requests, target 5"]);
        // One request of the opening among 200 reads.
        figures.add("read_random", Network::Shaped, Client::Plugin, sample(0.03, 1.005));
        assert_eq!(missed_requests(&figures).len(), 1);
        figures.add("read_random", Network::Shaped, Client::Plugin, sample(0.03, 1.99));
        assert_eq!(missed_requests(&figures).len(), 2);
    }

    #[test]
    fn what_is_slower_than_the_peer_is_said() {
        let mut figures = Figures::default();
        figures.add("glob", Network::Shaped, Client::Plugin, sample(0.2, 5.0));
        figures.add("glob", Network::Shaped, Client::TensorflowIo, sample(0.1, 5.0));
        let table = shaped(&figures).to_string();
        assert!(table.contains("**no** (slower than tensorflow-io)"), "{table}");
        assert!(table.contains(" 0.5× |"), "{table}");
        assert!(earlier(&figures).is_none());
        figures.add("glob", Network::Shaped, Client::Before, sample(0.1, 5.0));
        let table = earlier(&figures).expect("an earlier library ran").to_string();
        assert!(table.contains(" 200 ms | 100 ms | 2.00 |"), "{table}");
        // As fast as a single request is, give or take.
        let mut figures = Figures::default();
        figures.add("write_small", Network::Shaped, Client::Plugin, sample(0.035, 1.0));
        figures.add("write_small", Network::Shaped, Client::TensorflowIo, sample(0.034, 1.0));
        let table = shaped(&figures).to_string();
        assert!(!table.contains("slower"), "{table}");
    }

    #[test]
    fn numbers_are_readable() {
        let shown = [0.0312, 0.45, 1.2, 282.4].map(seconds);
        assert_eq!(shown, ["31.2 ms", "450 ms", "1.20 s", "282 s"]);
        assert_eq!([1.0, 3.9, 20_050.0].map(count), ["1", "3.9", "20,050"]);
        assert_eq!(megabytes(255e6), "255 MB");
    }
}
