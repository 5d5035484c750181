//! Whether a card's cooperative matrices compute what they should. A driver that does something else with them would show
//! nowhere but in a model that does not learn.

use super::matrix::Products;
use super::*;
use crate::device::GpuDevice;
use se_plugin::Counters;

/// Tiles of both matrices are not full.
const SIZE: usize = 72;

/// Small whole numbers, whose products a 16-bit float holds.
fn factor(step: usize) -> Vec<f16> {
    let number = |at: usize| f16::from_f32((at * step % 7) as f32 - 3.0);
    (0..SIZE * SIZE).map(number).collect()
}

fn bytes(numbers: &[f16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// Multiplies two matrices by them.
///
/// # Errors
/// Those of the driver; `INTERNAL` if the product is wrong.
pub(crate) fn multiply(device: &GpuDevice, matrix: CooperativeMatrix) -> Result<()> {
    let (a, b) = (factor(3), factor(5));
    let mut places = Vec::new();
    let mut place = || -> Result<_> {
        let place = device.allocate((2 * SIZE * SIZE) as u64)?;
        places.push(place);
        Ok(place)
    };
    let found = [place(), place(), place()].into_iter().collect::<Result<Vec<_>>>();
    let found =
        found.and_then(|all| multiply_at(device, matrix, [&a, &b], [all[0], all[1], all[2]]));
    for place in places {
        device.deallocate(place)?;
    }
    let expected: Vec<_> = (0..SIZE * SIZE)
        .map(|at| {
            let (row, column) = (at / SIZE, at % SIZE);
            let term = |k: usize| a[row * SIZE + k].to_f32() * b[k * SIZE + column].to_f32();
            f16::from_f32((0..SIZE).map(term).sum())
        })
        .collect();
    match found? == bytes(&expected) {
        true => Ok(()),
        false => Err(Error::internal("a product of them is wrong")),
    }
}

fn multiply_at(
    device: &GpuDevice,
    matrix: CooperativeMatrix,
    factors: [&[f16]; 2],
    [a, b, out]: [DevicePtr; 3],
) -> Result<Vec<u8>> {
    for (place, factor) in [a, b].into_iter().zip(factors) {
        device.copy_to_device(place, &bytes(factor))?;
    }
    let mut stream = device.create_stream()?;
    // No op has run.
    stream.counters = Counters::new(0, None);
    let products = Products {
        transposed: [false; 2],
        rows: SIZE,
        inner: SIZE,
        columns: SIZE,
        count: 1,
        steps: [0; 2],
    };
    let mut found = vec![0; 2 * SIZE * SIZE];
    let operands = [a, b, out].map(|place| Operand::Bytes(place, found.len() as u64));
    products.with(Some(matrix), "MatMul", DType::Float16, &operands, |launch| {
        launch.enqueue_on(&stream)
    })?;
    stream.synchronize()?;
    device.download(HostBuf::from_slice(&mut found), out)?;
    Ok(found)
}
