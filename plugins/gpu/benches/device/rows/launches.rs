//! Measures the cost of a launch, with a kernel so small that only the launch counts.

use super::Bench;
use crate::contestant::Launch;
use crate::stats::{Spread, ratios, take_turns};
use crate::table::{Goal, Row};
use anyhow::{Result, ensure};
use gpu::bench;
use se_plugin::kernel::DType;
use std::time::Instant;

/// The elements of a workgroup.
const LEN: usize = 256;

pub(super) fn rows(bench: &mut Bench) -> Result<Vec<Row>> {
    let count = bench.sizes.launches;
    let ones: Vec<u8> = (0..LEN).flat_map(|_| 1.0_f32.to_ne_bytes()).collect();
    let (sum, one) = (bench.tensor(&vec![0; 4 * LEN])?, bench.tensor(&ones)?);
    let mut program = 0;
    for contestant in bench.both() {
        let add = bench::elementwise("AddV2", DType::Float32, LEN).map_err(crate::plugin::text)?;
        program = contestant.prepare(add)?;
    }
    // Each adds one to the sums of the launch before.
    let launches: Vec<_> =
        (0..count).map(|_| Launch { program, tensors: vec![sum, one, sum] }).collect();
    let mut runs = 0;
    let rounds = take_turns(2, bench.sizes.rounds, |index| {
        runs += usize::from(index == 0);
        let start = Instant::now();
        let host = bench.both()[index].run(&launches)?;
        let each = |seconds: f64| seconds * 1e6 / count as f64;
        anyhow::Ok([each(host.as_secs_f64()), each(start.elapsed().as_secs_f64())])
    })?;
    for contestant in bench.both() {
        let mut actual = vec![0; 4 * LEN];
        contestant.read(&mut actual, sum)?;
        let expected = ((runs * count) as f32).to_ne_bytes();
        ensure!(actual.chunks(4).all(|bytes| bytes == expected), "not each launch has added one");
    }
    let times = |contestant: usize, time: usize| {
        rounds[contestant].iter().map(|times| times[time]).collect::<Vec<_>>()
    };
    let row = |what: String, time: usize, goal: f64, is_everywhere: bool| Row {
        what,
        reference: String::from(bench.backend.of("cuLaunchKernel", "the same launches with ash")),
        plugin: Spread::of(&times(0, time)).median,
        bare: Some(Spread::of(&times(1, time)).median),
        unit: "µs",
        ratio: Some(ratios(&times(0, time), &times(1, time))),
        goal: Some(Goal::AtMost(goal)),
        is_everywhere,
    };
    Ok(vec![
        row(format!("host time of a launch, of {count}"), 0, bench.backend.of(1.5, 1.2), false),
        row(format!("time of a launch until all {count} are done"), 1, 1.1, true),
    ])
}
