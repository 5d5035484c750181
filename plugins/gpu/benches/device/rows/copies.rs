//! Measures copies, through the host of the tests as TensorFlow makes them.

use super::{Bench, mebibytes};
use crate::contestant::Way;
use crate::plugin::Hosted;
use crate::stats::{Spread, ratios, take_turns};
use crate::table::{Goal, Row};
use anyhow::{Result, ensure};
use std::time::Instant;

/// The goal, as a part of the speed of the driver's own copies.
const GOAL: f64 = 0.90;

pub(super) fn rows(bench: &mut Bench) -> Result<Vec<Row>> {
    let (bytes, rounds, times) = (bench.sizes.copied, bench.sizes.rounds, bench.sizes.times);
    let hosted = Hosted::open()?;
    let memory = [hosted.allocate(bytes)?, hosted.allocate(bytes)?];
    let source: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    let (one, other) = (bench.bare.allocate(bytes)?, bench.bare.allocate(bytes)?);
    bench.bare.write(one, &source)?;
    let mut back = vec![0; bytes];

    let rounds_of = take_turns(8, rounds, |index| {
        let start = Instant::now();
        match index {
            0 => hosted.write(memory[0], &source)?,
            1 => bench.bare.write(one, &source)?,
            2 => bench.bare.transfer(one, bytes, Way::ToDevice)?,
            3 => hosted.read(&mut back, memory[0])?,
            4 => bench.bare.read(&mut back, one)?,
            5 => bench.bare.transfer(one, bytes, Way::ToHost)?,
            6 => hosted.copy(memory[1], memory[0], bytes, times)?,
            _ => bench.bare.copy(other, one, bytes, times)?,
        }
        let copies = if index < 6 { 1 } else { times };
        anyhow::Ok((bytes * copies) as f64 / start.elapsed().as_secs_f64() / 1e9)
    })?;
    hosted.write(memory[0], &source)?;
    hosted.copy(memory[1], memory[0], bytes, 1)?;
    hosted.read(&mut back, memory[1])?;
    ensure!(back == source, "what came back from the device is not what was copied to it");
    memory.into_iter().for_each(|memory| hosted.deallocate(memory));

    let median = |index: usize| Spread::of(&rounds_of[index]).median;
    let [to, from, on] = bench.bare.copies();
    let (size, pinned) = (mebibytes(bytes), "memory that the GPU reaches");
    let row = |what: &str, reference: &str, plugin: usize, bare: usize| Row {
        what: format!("copy {what}, {size}"),
        reference: String::from(reference),
        plugin: median(plugin),
        bare: Some(median(bare)),
        unit: "GB/s",
        ratio: Some(ratios(&rounds_of[plugin], &rounds_of[bare])),
        goal: Some(Goal::AtLeast(GOAL)),
        is_everywhere: false,
    };
    Ok(vec![
        row("to the device", to, 0, 1),
        row("to the device", &format!("the same from {pinned}"), 0, 2),
        row("to the host", from, 3, 4),
        row("to the host", &format!("the same to {pinned}"), 3, 5),
        row("on the device", on, 6, 7),
    ])
}
