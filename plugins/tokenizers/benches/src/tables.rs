//! The tables of the benchmark.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use cargo_tf_plugin::bench::grouped;
use serde_json::{Value, json};
use tf_plugin_benches::comparison::compared;
use tf_plugin_benches::report::{RATIO, Table, number};
use tf_plugin_benches::stats::take_turns;
use tf_plugin_benches::worker::{Answer, Worker};

use crate::clients::{Client, Clients};
use crate::direct;

/// No run takes longer.
const DEADLINE: Duration = Duration::from_secs(600);
/// The CPU cores of all contestants.
pub const CORES: usize = 2;

/// The tokenizers, with tensorflow-text's ops of the same kind.
pub const TOKENIZERS: [(&str, &[Client]); 3] = [
    ("wordpiece", &[Client::Bert, Client::FastBert]),
    ("unigram", &[Client::SentencePiece]),
    ("bpe", &[]),
];

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The texts of a batch, and those of a round.
    pub batches: &'static [(usize, usize)],
    /// How often each contestant runs.
    pub rounds: usize,
    /// The texts of the memory's table, and of its batches.
    pub many: (usize, usize),
    /// How much the number of ids of another implementation may differ.
    pub tolerance: f64,
}

impl Size {
    /// Returns the largest number of texts of a round.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.batches.iter().map(|&(_, lines)| lines).max().unwrap_or(0)
    }
}

/// A contestant that is ready to run.
enum Contestant {
    Crate(Box<tokenizers::Tokenizer>),
    Process(Client, Worker),
}

impl Contestant {
    fn name(&self) -> &'static str {
        match self {
            Self::Crate(_) => "the crate",
            Self::Process(client, _) => client.name(),
        }
    }

    /// Tokenizes the first lines of a file; returns the number of ids, and the seconds.
    fn run(
        &mut self,
        tokenizer: &str,
        file: &Path,
        batch: usize,
        lines: usize,
    ) -> Result<(i64, f64)> {
        match self {
            Self::Crate(tokenizer) => {
                let start = Instant::now();
                let count = direct::tokenize(tokenizer, file, batch, lines, CORES)?;
                Ok((count, start.elapsed().as_secs_f64()))
            }
            Self::Process(client, worker) => {
                let arguments =
                    json!({"tokenizer": tokenizer, "file": file, "batch": batch, "lines": lines});
                let answer = tokenize(worker, &arguments).with_context(|| client.name())?;
                Ok((answer.answer, answer.seconds))
            }
        }
    }
}

/// Lets a process build its graph, and then run it.
fn tokenize(worker: &mut Worker, arguments: &Value) -> Result<Answer> {
    worker.run("prepare", arguments, DEADLINE)?;
    worker.run("tokenize", &json!({}), DEADLINE)
}

/// Measures the texts a second of a tokenizer.
///
/// # Errors
/// When a contestant fails, or finds other ids.
pub fn speed(clients: &Clients, tokenizer: &str, others: &[Client], size: Size) -> Result<Table> {
    let file = clients.files().join("texts.txt");
    let json = clients.files().join(tokenizer).with_extension("json");
    let process = |client: Client| -> Result<Contestant> {
        Ok(Contestant::Process(client, clients.worker(client)?))
    };
    let mut contestants = vec![
        process(Client::Ops)?,
        Contestant::Crate(Box::new(direct::read(&json)?)),
        process(Client::PyFunction)?,
    ];
    for &client in others {
        contestants.push(process(client)?);
    }
    let mut headings = vec!["texts a batch", "the ops, texts/s"];
    for contestant in &contestants[1..] {
        headings.extend([contestant.name(), RATIO]);
    }
    let mut table = Table::new(&headings);
    for &(batch, lines) in size.batches {
        eprintln!("timing: {tokenizer}, batches of {batch}");
        let mut expected = None;
        let speeds = take_turns(contestants.len(), size.rounds, |index| {
            let (count, seconds) = contestants[index].run(tokenizer, &file, batch, lines)?;
            let expected = *expected.get_or_insert(count);
            let difference = (count - expected).abs() as f64 / expected as f64;
            // The first three are one implementation.
            ensure!(
                difference <= if index < 3 { 0.0 } else { size.tolerance },
                "{} has {count} ids, the ops have {expected}",
                contestants[index].name()
            );
            Ok::<_, anyhow::Error>(lines as f64 / seconds)
        })?;
        let cells = [grouped(batch as f64)].into_iter().chain(compared(&speeds, 1.0));
        table.push(cells);
    }
    Ok(table)
}

/// Measures the memory of a pass over many texts, each in a process of its own.
///
/// # Errors
/// When a contestant fails.
pub fn memory(clients: &Clients, size: Size) -> Result<Table> {
    let (lines, batch) = size.many;
    let heading = format!("{} texts in batches of {batch}", number(lines as f64));
    let mut table = Table::new(&[&heading, "MiB above the imports", "texts/s"]);
    for client in [Client::Ops, Client::PyFunction, Client::Bert, Client::FastBert] {
        eprintln!("memory: {}", client.name());
        let file = clients.files().join("many.txt");
        let arguments =
            json!({"tokenizer": "wordpiece", "file": file, "batch": batch, "lines": lines});
        let answer = tokenize(&mut clients.worker(client)?, &arguments)?;
        table.push([
            client.name().to_owned(),
            number(answer.memory as f64 / f64::from(1 << 20)),
            number(lines as f64 / answer.seconds),
        ]);
    }
    Ok(table)
}
