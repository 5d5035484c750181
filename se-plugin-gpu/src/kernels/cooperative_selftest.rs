//! Tests whether a GPU's cooperative matrices compute the right results, and are faster. If a driver computes
//! something else, or emulates them, only a model that does not learn, or learns slowly, would show it.

use super::*;
use crate::address_map::AddressMap;
use crate::backend::{Batch, Buffer, Gpu, MatMul, Operation};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Returns what products of float16 use on this GPU. The first call tests that on the GPU; others wait for the first.
pub(crate) fn cooperative(gpu: &Arc<Gpu>) -> Option<CooperativeMatrix> {
    let (prefix, offered) = (gpu.prefix, gpu.offered?);
    // In a fork nobody may take the lock; the next call fails, too, and says why.
    gpu.check_process().ok()?;
    let mut tried = gpu.cooperative.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(decided) = *tried {
        return decided;
    }
    let decided = match SelfTest::new(gpu).and_then(|selftest| selftest.run(offered)) {
        Ok(usable) => {
            log::info!("{prefix} multiplies float16 by cooperative matrices of {offered}");
            Some(usable)
        }
        // There may be memory another time.
        Err(error) if error.code() == Code::ResourceExhausted => return None,
        Err(_) if gpu.lost().is_some() => return None,
        Err(error) => {
            log::warn!(
                "{prefix} multiplies float16 without the cooperative matrices of {offered} that `{}` has: {}; \
                 {prefix}_COOPERATIVE_MATRICES=0 leaves them out from the start",
                gpu.name,
                error.message()
            );
            None
        }
    };
    *tried = Some(decided);
    decided
}

/// Returns small whole numbers, whose products a 16-bit float can represent.
fn factor(len: usize, step: usize) -> Vec<f16> {
    (0..len).map(|at| f16::from_f32((at * step % 7) as f32 - 3.0)).collect()
}

fn bytes(numbers: &[f16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// Returns products of float16, all of the same two matrices.
fn product(transpose: [bool; 2], [rows, inner, columns]: [usize; 3], batch: usize) -> MatMul {
    MatMul { dtype: DType::Float16, transpose, rows, inner, columns, batch, strides: [0; 2] }
}

/// Two matrices, and the place for their product.
struct SelfTest<'a> {
    gpu: &'a Arc<Gpu>,
    address_map: AddressMap,
    places: [DevicePtr; 3],
}

/// The elements of each of its tensors.
const LEN: usize = 1 << 22;
/// Rows, columns and elements of a sum of the matrices whose product is timed: with full tiles, and with others.
const SIDES: [usize; 2] = [1 << 10, (1 << 10) + 8];

/// Rows, elements of a sum, columns and the number of products that use the largest tiles: with gaps, and full ones.
const LARGE: [([usize; 3], usize); 2] = [([136, 40, 136], 64), ([128, 32, 128], 256)];

impl<'a> SelfTest<'a> {
    fn new(gpu: &'a Arc<Gpu>) -> Result<Self> {
        let address_map = AddressMap::default();
        let place = || address_map.add(Buffer::local(gpu, 2 * LEN as u64)?);
        let places = [place()?, place()?, place()?];
        Ok(Self { gpu, address_map, places })
    }

    /// Tests the matrices, and returns what of them can be used.
    fn run(&self, mut matrix: CooperativeMatrix) -> Result<CooperativeMatrix> {
        matrix.stores = matrix.stores && self.rounds(matrix)?;
        // Neighbours in memory are in a matrix together, or not; tiles are of both sizes, and full or not.
        for (size, transposed) in [
            (72, [false, false]),
            (72, [false, true]),
            (72, [true, false]),
            (72, [true, true]),
            (74, [true, false]),
            (74, [false, true]),
            (64, [true, false]),
            (64, [false, true]),
        ] {
            self.check(matrix, transposed, [size; 3], 1)?;
        }
        let [gaps, full] = LARGE;
        self.check(matrix, [false; 2], gaps.0, gaps.1)?;
        // A driver for the CPU takes seconds for this, and its time for products is known.
        if !self.gpu.is_software {
            self.check(matrix, [false; 2], full.0, full.1)?;
            let [full, gaps] = SIDES;
            let [with, without] = self.times(matrix, full)?;
            ensure!(
                with < without * 2,
                Error::internal(format!(
                    "a product takes {with:?} with them and {without:?} without"
                ))
            );
            let [with, without] = self.times(matrix, gaps)?;
            matrix.parts = with < without * 6 / 5;
        }
        Ok(matrix)
    }

    /// Returns whether sums that become 16-bit floats within the matrix units are rounded to the
    /// nearest, ties to even: Vulkan leaves that to drivers.
    fn rounds(&self, matrix: CooperativeMatrix) -> Result<bool> {
        const SIZE: usize = 64;
        let tiny = f16::MIN_POSITIVE_SUBNORMAL;
        // Terms of a sum, the last of which is halved: ties, to infinity or not, of subnormals, and one of these alone.
        let sums = [
            [2048.0, 1.0, 0.0],
            [2048.0, 3.0, 0.0],
            [65504.0, 15.0, 0.0],
            [65504.0, 16.0, 0.0],
            [0.0, 0.0, 3.0 * tiny.to_f32()],
            [0.0, tiny.to_f32(), 0.0],
            [-2048.0, -3.0, 0.0],
        ];
        let (mut a, mut b) = ([f16::ZERO; SIZE * SIZE], [f16::ZERO; SIZE * SIZE]);
        for (line, terms) in a.chunks_mut(SIZE).zip(sums.iter().cycle()) {
            for (element, term) in line.iter_mut().zip(terms) {
                *element = f16::from_f32(*term);
            }
        }
        for (line, weight) in b.chunks_mut(SIZE).zip([1.0, 1.0, 0.5]) {
            line.fill(f16::from_f32(weight));
        }
        self.is_right(matrix, [false; 2], [SIZE; 3], 1, [&a, &b])
    }

    /// Returns the times of a large product with and without them, whose results are rounded in
    /// another order. If the times are close, the GPU's other work decides.
    fn times(&self, matrix: CooperativeMatrix, side: usize) -> Result<[Duration; 2]> {
        let mut shortest = [Duration::MAX; 2];
        // In turns, so that the GPU's other work affects both; the first round compiles them.
        for round in 0..6 {
            for (shortest, matrix) in shortest.iter_mut().zip([Some(matrix), None]) {
                let took = self.time(matrix, side)?;
                if round > 0 {
                    *shortest = took.min(*shortest);
                }
            }
        }
        Ok(shortest)
    }

    /// Fails if small whole numbers are not multiplied correctly.
    fn check(
        &self,
        matrix: CooperativeMatrix,
        transposed: [bool; 2],
        sizes @ [rows, inner, columns]: [usize; 3],
        count: usize,
    ) -> Result<()> {
        let (a, b) = (factor(rows * inner, 3), factor(inner * columns, 5));
        let is_right = self.is_right(matrix, transposed, sizes, count, [&a, &b])?;
        ensure!(is_right, Error::internal("a product of them is wrong; update its driver"));
        Ok(())
    }

    /// Multiplies the same two matrices `count` times. Returns whether each product is right.
    fn is_right(
        &self,
        matrix: CooperativeMatrix,
        transposed: [bool; 2],
        [rows, inner, columns]: [usize; 3],
        count: usize,
        [a, b]: [&[f16]; 2],
    ) -> Result<bool> {
        let mut batch = Batch::new(self.gpu)?;
        for (place, factor) in self.places.into_iter().zip([a, b]) {
            let (place, factor) =
                (self.address_map.find("a self-test", place, 2 * LEN as u64)?, bytes(factor));
            batch.upload(&place, factor.len(), |to| to.copy_from_slice(&factor))?;
        }
        let product = product(transposed, [rows, inner, columns], count);
        self.dispatch(&mut batch, Some(matrix), &product)?;
        let out = self.address_map.find("a self-test", self.places[2], 2 * LEN as u64)?;
        let len = 2 * rows * columns;
        let staged = batch.download(&out, len * count)?;
        batch.flush()?;
        let at = |lines: bool, [line, k]: [usize; 2], [size, inner]: [usize; 2]| {
            if lines { k * size + line } else { line * inner + k }
        };
        let expected = |row: usize, column: usize| {
            let term = |k| {
                let a = a[at(transposed[0], [row, k], [rows, inner])];
                let b = b[at(!transposed[1], [column, k], [columns, inner])];
                a.to_f32() * b.to_f32()
            };
            f16::from_f32((0..inner).map(term).fold(0.0, |sum, term| sum + term))
        };
        let expected: Vec<_> =
            (0..rows * columns).map(|at| expected(at / columns, at % columns)).collect();
        let expected = bytes(&expected);
        Ok(batch.staged(staged).chunks(len).all(|found| found == expected))
    }

    /// Returns how long a product of square matrices takes.
    fn time(&self, matrix: Option<CooperativeMatrix>, side: usize) -> Result<Duration> {
        let mut batch = Batch::new(self.gpu)?;
        let start = Instant::now();
        self.dispatch(&mut batch, matrix, &product([false; 2], [side; 3], 1))?;
        batch.flush()?;
        Ok(start.elapsed())
    }

    fn dispatch(
        &self,
        batch: &mut Batch,
        matrix: Option<CooperativeMatrix>,
        product: &MatMul,
    ) -> Result<()> {
        let operands = self.places.map(|place| Operand::Bytes(place, 2 * LEN as u64));
        product.with(matrix, "MatMul", &operands, |launch, _| {
            let (uses, shader) = launch.prepare(self.gpu, &self.address_map, Operation::Shader)?;
            batch.dispatch(launch.op, &uses, &shader)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::matrix::Tiles;

    #[test]
    fn tiles_of_both_sizes_are_tried() {
        let matrix = CooperativeMatrix::USUAL;
        let tiles = |rows, columns, count| Tiles::new(Some(matrix), rows, columns, count);
        let of = |sizes @ [rows, _, columns]: [usize; 3], count| {
            let tiles = tiles(rows, columns, count);
            (tiles.each, tiles.is_full(sizes))
        };
        assert_eq!([of([72; 3], 1), of([64; 3], 1)], [(4, false), (4, true)]);
        assert_eq!(LARGE.map(|(sizes, count)| of(sizes, count)), [(8, false), (8, true)]);
        for ([rows, _, columns], count) in LARGE {
            assert!(rows * columns * count <= LEN);
        }
        for side in SIDES {
            assert!(side * side <= LEN);
        }
        assert_eq!(SIDES.map(|side| of([side; 3], 1).1), [true, false]);
        let few = CooperativeMatrix { most: 4, ..matrix };
        assert_eq!(Tiles::new(Some(few), 136, 136, 64).each, 4);
    }
}
