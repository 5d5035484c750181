//! Training of whole models by the GPU plugin and by the libraries that a user would pick in its place.

mod contestants;
mod models;

pub use contestants::{Contestant, Contestants};
pub use models::{MODELS, Model, Precision};

use crate::report::{Table, number};
use crate::stats::{Spread, ratios, take_turns};
use crate::worker::Worker;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::time::Duration;

/// The longest time for the first steps, in which libraries compile, or for a round.
const LIMIT: Duration = Duration::from_secs(1800);

/// The images of a step, their edge, and the steps of a round.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Images, or texts, in a step.
    pub batch: usize,
    /// Edge of the images in pixels; for the transformer, tokens and their width.
    pub size: usize,
    /// Steps between two looks at the clock.
    pub steps: usize,
    /// How often the contestants take turns.
    pub rounds: usize,
}

/// What the contestants have taken for a model.
#[derive(Debug)]
pub struct Measured {
    /// The model.
    pub model: &'static Model,
    /// The precision of all contestants.
    pub precision: Precision,
    /// Each contestant's images in a second, round by round.
    pub rates: Vec<(Contestant, Vec<f64>)>,
    /// Each contestant's loss after the last round.
    pub losses: Vec<f64>,
}

impl Measured {
    /// Trains a model in all processes by turns. A contestant that cannot train it is left out, and said to be.
    ///
    /// # Errors
    /// When the plugin fails, or anyone after the first steps; the text names it.
    pub fn take(
        workers: &mut [(Contestant, Worker)],
        model: &'static Model,
        precision: Precision,
        sizes: Sizes,
    ) -> Result<Self> {
        let Sizes { batch, steps, rounds, .. } = sizes;
        let size = sizes.size.min(model.largest);
        let train = json!({ "model": model.name, "precision": precision.name() });
        let mut arguments = train.clone();
        arguments["batch"] = batch.into();
        arguments["size"] = size.into();
        arguments["steps"] = steps.into();
        let mut prepared = Vec::new();
        for (contestant, worker) in workers {
            eprintln!("{}, {}: {}", model.name, precision.name(), contestant.name());
            match run(*contestant, worker, "prepare", &arguments) {
                Ok(_) => prepared.push((*contestant, worker)),
                Err(error) if *contestant == Contestant::Plugin => return Err(error),
                Err(error) => println!("{}, {}: {error:#}", model.name, precision.name()),
            }
        }
        let mut workers = prepared;
        let mut losses = vec![0.0; workers.len()];
        let taken = take_turns(workers.len(), rounds, |index| {
            let (contestant, worker) = &mut workers[index];
            let (seconds, loss) = run(*contestant, worker, "train", &train)?;
            losses[index] = loss;
            anyhow::Ok((batch * steps) as f64 / seconds)
        })?;
        let rates = workers.iter().map(|&(contestant, _)| contestant).zip(taken).collect();
        Ok(Self { model, precision, rates, losses })
    }

    fn rates_of(&self, contestant: Contestant) -> Option<&[f64]> {
        self.rates.iter().find(|(it, _)| *it == contestant).map(|(_, rates)| rates.as_slice())
    }
}

/// Runs an operation, and returns its seconds and the loss.
fn run(
    contestant: Contestant,
    worker: &mut Worker,
    what: &str,
    arguments: &Value,
) -> Result<(f64, f64)> {
    let answer = worker.run(what, arguments, LIMIT);
    let answer = answer.with_context(|| format!("{} cannot {what}", contestant.name()))?;
    Ok((answer.seconds, answer.answer as f64 / 1e6))
}

/// The table of what was measured: for each contestant its rate, and the plugin's relative to it; on a GPU also the goals.
///
/// # Errors
/// When there is a model without the plugin.
pub fn table(measured: &[Measured], is_gpu: bool) -> Result<Table> {
    let mut table = Table::new(&[
        "a training step",
        "precision",
        "library",
        "images a second",
        "plugin relative to it (quartiles)",
        "goal",
        "met",
        "loss",
    ]);
    for row in measured {
        let plugin = row.rates_of(Contestant::Plugin).context("the plugin was not measured")?;
        for ((contestant, rates), loss) in row.rates.iter().zip(&row.losses) {
            let ratio = ratios(plugin, rates);
            let goal = row.model.goal(*contestant, row.precision).filter(|_| is_gpu);
            table.push([
                row.model.name.to_owned(),
                row.precision.name().to_owned(),
                contestant.name().to_owned(),
                number(Spread::of(rates).median),
                if *contestant == Contestant::Plugin {
                    "–".to_owned()
                } else {
                    ratio.to_string()
                },
                goal.map_or("–".to_owned(), |goal| format!("≥ {goal}")),
                goal.map_or("–", |goal| if ratio.median >= goal { "yes" } else { "**no**" })
                    .to_owned(),
                format!("{loss:.4}"),
            ]);
        }
    }
    Ok(table)
}

/// The plugin's rate in mixed precision relative to its own in float32, for each model with both.
#[must_use]
pub fn gains_of_mixed_precision(measured: &[Measured]) -> Vec<(&'static str, Spread)> {
    let of = |model: &'static Model, precision| {
        let mut rows = measured.iter();
        let row = rows.find(|row| row.model.name == model.name && row.precision == precision)?;
        row.rates_of(Contestant::Plugin)
    };
    let gain = |model: &'static Model| {
        let (mixed, full) = (of(model, Precision::Mixed)?, of(model, Precision::Full)?);
        Some((model.name, ratios(mixed, full)))
    };
    MODELS.iter().filter_map(gain).collect()
}
