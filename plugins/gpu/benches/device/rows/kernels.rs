//! Measures how long the GPU runs kernels, and checks the results.

use super::{Backend, Bench};
use crate::backend::Blas;
use crate::contestant::{Contestant as _, Launch, signs};
use crate::stats::{Spread, ratios, take_turns};
use crate::table::{Goal, Row};
use anyhow::{Result, ensure};
use gpu::bench::{self, Addresses};
use half::f16;
use se_plugin::kernel::DType;
use std::time::Instant;

/// Returns `count` equal launches on the first three tensors.
fn launches(program: usize, count: usize) -> Vec<Launch> {
    (0..count).map(|_| Launch { program, tensors: vec![0, 1, 2] }).collect()
}

/// Compares the times of the plugin and of the bare program for the same launches.
fn compare(bench: &mut Bench, program: usize, what: String) -> Result<Row> {
    let launches = launches(program, bench.sizes.times);
    let rounds = take_turns(2, bench.sizes.rounds, |index| {
        let start = Instant::now();
        bench.both()[index].run(&launches)?;
        anyhow::Ok(start.elapsed().as_secs_f64() * 1e3)
    })?;
    let median = |index: usize| Spread::of(&rounds[index]).median;
    Ok(Row {
        what,
        reference: String::from("the same launches without the plugin"),
        plugin: median(0),
        bare: Some(median(1)),
        unit: "ms",
        ratio: Some(ratios(&rounds[0], &rounds[1])),
        goal: Some(Goal::AtMost(1.1)),
        is_everywhere: true,
    })
}

/// Prepares a program in both, with the same number.
fn prepare(
    bench: &mut Bench,
    make: impl Fn() -> se_plugin::Result<bench::Program>,
) -> Result<usize> {
    let mut program = 0;
    for contestant in bench.both() {
        program = contestant.prepare(make().map_err(crate::plugin::text)?)?;
    }
    Ok(program)
}

/// Measures `AddV2`, against copies of as many bytes.
pub(super) fn elementwise(bench: &mut Bench) -> Result<Vec<Row>> {
    let (len, times) = (bench.sizes.elements, bench.sizes.times);
    let numbers = |seed| (0..len).map(move |at| ((at * seed) % 1021) as f32);
    let bytes = |seed| numbers(seed).flat_map(f32::to_ne_bytes).collect::<Vec<u8>>();
    for seed in [3, 7] {
        bench.tensor(&bytes(seed))?;
    }
    let sum = bench.tensor(&vec![0; 4 * len])?;
    let program = prepare(bench, || bench::elementwise("AddV2", DType::Float32, len))?;
    let all = launches(program, times);
    let rounds = take_turns(2, bench.sizes.rounds, |index| {
        let start = Instant::now();
        // An addition reads two tensors and writes one, a copy reads one and writes one.
        let tensors = match index {
            0 => {
                bench.plugin.run(&all)?;
                3
            }
            _ => {
                bench.bare.copy(1, 0, 4 * len, times)?;
                2
            }
        };
        anyhow::Ok((tensors * 4 * len * times) as f64 / start.elapsed().as_secs_f64() / 1e9)
    })?;
    let expected: Vec<u8> =
        numbers(3).zip(numbers(7)).flat_map(|(a, b)| (a + b).to_ne_bytes()).collect();
    let mut actual = vec![0; expected.len()];
    bench.plugin.read(&mut actual, sum)?;
    ensure!(actual == expected, "AddV2 does not add");
    // The copies have replaced the second summand.
    bench.bare.write(1, &bytes(7))?;
    let what = format!("AddV2 of {len} f32");
    let same = compare(bench, program, what.clone())?;
    bench.bare.read(&mut actual, sum)?;
    ensure!(actual == expected, "AddV2 without the plugin does not add");

    let median = |index: usize| Spread::of(&rounds[index]).median;
    let bandwidth = Row {
        what,
        reference: format!("bytes of {}", bench.bare.copies()[2]),
        plugin: median(0),
        bare: Some(median(1)),
        unit: "GB/s",
        ratio: Some(ratios(&rounds[0], &rounds[1])),
        goal: Some(Goal::AtLeast(bench.backend.of(0.90, 0.80))),
        is_everywhere: false,
    };
    Ok(vec![bandwidth, same])
}

/// Checks elements of the product of two matrices of -1, 0 and 1: all of a small one, some of a large one.
fn check(size: usize, is_half: bool, factors: &[Vec<i8>; 2], product: &[u8]) -> Result<()> {
    let step = (size * size / 4096).max(1) | 1;
    for at in (0..size * size).step_by(step) {
        let (row, column) = (at / size, at % size);
        let term = |k: usize| factors[0][row * size + k] * factors[1][k * size + column];
        let expected = (0..size).map(|k| i32::from(term(k))).sum::<i32>() as f32;
        let (expected, actual) = if is_half {
            let actual = f16::from_ne_bytes([product[2 * at], product[2 * at + 1]]);
            (f16::from_f32(expected).to_f32(), actual.to_f32())
        } else {
            let bytes = [0, 1, 2, 3].map(|byte| product[4 * at + byte]);
            (expected, f32::from_ne_bytes(bytes))
        };
        ensure!(actual == expected, "element {row}, {column} is {actual} and not {expected}");
    }
    Ok(())
}

/// Measures `MatMul`, against NVIDIA's libraries.
pub(super) fn products(bench: &mut Bench) -> Result<Vec<Row>> {
    let mut rows = product(bench, false)?;
    bench.clear();
    rows.extend(product(bench, true)?);
    Ok(rows)
}

fn product(bench: &mut Bench, is_half: bool) -> Result<Vec<Row>> {
    let (size, times) = (bench.sizes.matrix, bench.sizes.times);
    let factors = [3, 7].map(|seed| signs(size * size, seed).collect::<Vec<_>>());
    let bytes = factors.each_ref().map(|factor| {
        let numbers = factor.iter().map(|&sign| f32::from(sign));
        match is_half {
            true => numbers.flat_map(|x| f16::from_f32(x).to_ne_bytes()).collect::<Vec<u8>>(),
            false => numbers.flat_map(f32::to_ne_bytes).collect(),
        }
    });
    bench.tensor(&bytes[0])?;
    bench.tensor(&bytes[1])?;
    let mut actual = vec![0; bytes[0].len()];
    let out = bench.tensor(&actual)?;
    let dtype = if is_half { DType::Float16 } else { DType::Float32 };
    let plain = || bench::matmul(None, dtype, [size; 3], Addresses::Aligned);
    let program = prepare(bench, plain)?;
    // The plugin's program for this GPU. The bare program prepares the plain one again, to keep the numbers the same.
    let chosen = bench.plugin.matmul(dtype, size)?;
    bench.bare.prepare(plain().map_err(crate::plugin::text)?)?;
    let kind = if is_half { "f16" } else { "f32" };
    let what = format!("MatMul of {size} x {size} {kind}");

    let mut blas = Blas::open(&bench.plugin.gpu_name, size, is_half);
    let all = launches(chosen, times);
    let contestants = if blas.is_ok() { 3 } else { 1 };
    if let Ok(blas) = &mut blas {
        blas.write(bytes.each_ref().map(Vec::as_slice))?;
    }
    let rounds = take_turns(contestants, bench.sizes.rounds, |index| {
        let start = Instant::now();
        match (index, &mut blas) {
            (1 | 2, Ok(blas)) => blas.multiply(index == 2, times)?,
            _ => drop(bench.plugin.run(&all)?),
        }
        let operations = 2.0 * (size as f64).powi(3) * times as f64;
        anyhow::Ok(operations / start.elapsed().as_secs_f64() / 1e12)
    })?;
    bench.plugin.read(&mut actual, out)?;
    check(size, is_half, &factors, &actual)?;
    if let Ok(blas) = &mut blas {
        blas.read(&mut actual)?;
        check(size, is_half, &factors, &actual)?;
    }

    let median = |index: usize| Spread::of(&rounds[index]).median;
    let row = |reference: &str, bare: Option<usize>, goal: Option<f64>| Row {
        what: what.clone(),
        reference: String::from(reference),
        plugin: median(0),
        bare: bare.map(median),
        unit: "TFLOP/s",
        ratio: bare.map(|bare| ratios(&rounds[0], &rounds[bare])),
        goal: goal.map(Goal::AtLeast),
        is_everywhere: false,
    };
    let [of_blas, of_lt] = match (bench.backend, is_half) {
        (Backend::Cuda, false) => [None, Some(0.95)],
        (Backend::Cuda, true) => [None, None],
        (Backend::Vulkan, false) => [Some(0.60), None],
        (Backend::Vulkan, true) => [Some(0.50), None],
    };
    let mut rows = match &blas {
        Ok(_) => vec![row("cuBLAS", Some(1), of_blas), row("cuBLASLt", Some(2), of_lt)],
        Err(why) => vec![row(&format!("no cuBLAS here: {why}"), None, of_blas.or(of_lt))],
    };
    drop(blas);
    rows.push(compare(bench, program, what)?);
    bench.bare.read(&mut actual, out)?;
    check(size, is_half, &factors, &actual)?;
    Ok(rows)
}
