//! Whether a card's cooperative matrices compute what they should, and faster. A driver that does something else with them, or
//! has them without the card's help, would show nowhere but in a model that does not learn, or slowly.

use super::matrix::Products;
use super::*;
use crate::abi::{Batch, Block, Gpu};
use crate::regions::Regions;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What products of float16 use on this card. The first call tries it.
pub(crate) fn cooperative(gpu: &Arc<Gpu>) -> Option<CooperativeMatrix> {
    let offered = gpu.offered?;
    *gpu.cooperative.get_or_init(|| match Trial::new(gpu).and_then(|trial| trial.run(offered)) {
        Ok(()) => {
            log::info!("RUST_GPU multiplies float16 by cooperative matrices of {offered}");
            Some(offered)
        }
        Err(error) => {
            log::warn!(
                "RUST_GPU multiplies float16 without the cooperative matrices of {offered} that `{}` has: {}; \
                 RUST_GPU_COOPERATIVE_MATRICES=0 leaves them out from the start",
                gpu.name,
                error.message()
            );
            None
        }
    })
}

/// Small whole numbers, whose products a 16-bit float holds.
fn factor(len: usize, step: usize) -> Vec<f16> {
    (0..len).map(|at| f16::from_f32((at * step % 7) as f32 - 3.0)).collect()
}

fn bytes(numbers: &[f16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// Two matrices, and the place for their product.
struct Trial<'a> {
    gpu: &'a Arc<Gpu>,
    regions: Regions,
    places: [DevicePtr; 3],
}

/// Elements of each of its tensors.
const LEN: usize = 1 << 20;
/// Rows, columns and elements of a sum of the largest square matrices.
const SIDE: usize = 1 << 10;

impl<'a> Trial<'a> {
    fn new(gpu: &'a Arc<Gpu>) -> Result<Self> {
        let regions = Regions::default();
        let place = || regions.add(Block::local(gpu, 2 * LEN as u64)?);
        let places = [place()?, place()?, place()?];
        Ok(Self { gpu, regions, places })
    }

    fn run(&self, matrix: CooperativeMatrix) -> Result<()> {
        // Neighbours in memory are together in a matrix, or not; tiles are of both sizes, and not full.
        for (size, transposed) in [
            (72, [false, false]),
            (72, [false, true]),
            (72, [true, false]),
            (72, [true, true]),
            (70, [true, false]),
        ] {
            self.check(matrix, transposed, [size; 3], 1)?;
        }
        self.check(matrix, [false; 2], [136, 40, 136], 50)?;
        if self.gpu.is_software {
            return Ok(());
        }
        let [with, without] = [Some(matrix), None].map(|matrix| self.time(matrix));
        let (with, without) = (with?, without?);
        ensure!(
            with < without,
            Error::internal(format!("a product takes {with:?} with them and {without:?} without"))
        );
        Ok(())
    }

    /// Multiplies the same two matrices so many times.
    fn check(
        &self,
        matrix: CooperativeMatrix,
        transposed: [bool; 2],
        [rows, inner, columns]: [usize; 3],
        count: usize,
    ) -> Result<()> {
        let (a, b) = (factor(rows * inner, 3), factor(inner * columns, 5));
        let mut batch = Batch::new(self.gpu)?;
        for (place, factor) in self.places.into_iter().zip([&a, &b]) {
            let (place, factor) =
                (self.regions.find("a trial", place, 2 * LEN as u64)?, bytes(factor));
            batch.upload(&place, factor.len(), |to| to.copy_from_slice(&factor))?;
        }
        let products = Products { transposed, rows, inner, columns, count, steps: [0; 2] };
        self.dispatch(&mut batch, Some(matrix), &products)?;
        let out = self.regions.find("a trial", self.places[2], 2 * LEN as u64)?;
        let len = 2 * rows * columns;
        let staged = batch.download(&out, len * count)?;
        batch.flush()?;
        let at = |lines: bool, [line, k]: [usize; 2], [size, inner]: [usize; 2]| {
            if lines { k * size + line } else { line * inner + k }
        };
        let product = |row: usize, column: usize| {
            let term = |k| {
                let a = a[at(transposed[0], [row, k], [rows, inner])];
                let b = b[at(!transposed[1], [column, k], [columns, inner])];
                a.to_f32() * b.to_f32()
            };
            f16::from_f32((0..inner).map(term).fold(0.0, |sum, term| sum + term))
        };
        let expected: Vec<_> =
            (0..rows * columns).map(|at| product(at / columns, at % columns)).collect();
        let expected = bytes(&expected);
        let is_right = batch.staged(staged).chunks(len).all(|found| found == expected);
        ensure!(is_right, Error::internal("a product of them is wrong; update its driver"));
        Ok(())
    }

    /// The shortest of a few.
    fn time(&self, matrix: Option<CooperativeMatrix>) -> Result<Duration> {
        let mut batch = Batch::new(self.gpu)?;
        let mut shortest = Duration::MAX;
        let (rows, inner, columns) = (SIDE, SIDE, SIDE);
        let products =
            Products { transposed: [false; 2], rows, inner, columns, count: 1, steps: [0; 2] };
        // The first one is compiled.
        for round in 0..4 {
            let start = Instant::now();
            self.dispatch(&mut batch, matrix, &products)?;
            batch.flush()?;
            if round > 0 {
                shortest = shortest.min(start.elapsed());
            }
        }
        Ok(shortest)
    }

    fn dispatch(
        &self,
        batch: &mut Batch,
        matrix: Option<CooperativeMatrix>,
        products: &Products,
    ) -> Result<()> {
        let operands = self.places.map(|place| Operand::Bytes(place, 2 * LEN as u64));
        products.with(matrix, "MatMul", DType::Float16, &operands, |launch| {
            let (uses, push) = launch.prepare(&self.regions)?;
            let pipeline = self.gpu.pipeline(launch.shader, launch.constants)?;
            batch.dispatch(launch.op, pipeline, &uses, &push, launch.groups)
        })
    }
}
