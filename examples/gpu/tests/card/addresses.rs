//! Kernels on memory at addresses that are multiples of an element's size and of nothing larger, and outside of the device's.

use gpu::bench::{self, Convolve, Program};
use gpu::{GpuDevice, GpuPlatform, GpuStream};
use se_plugin::kernel::DType;
use se_plugin::{Code, Device as _, DevicePtr, HostBuf, Platform as _, Result, Stream as _};

struct Card {
    device: GpuDevice,
    stream: GpuStream,
}

fn card() -> Card {
    let device = GpuPlatform::new().and_then(|platform| platform.open(0)).expect("a device");
    let stream = device.create_stream().expect("a stream");
    Card { device, stream }
}

impl Card {
    /// What the program makes of its inputs, in one allocation, each so many bytes behind an address that is aligned.
    fn result(
        &self,
        program: &Program,
        inputs: &[Vec<u8>],
        out: usize,
        shift: u64,
    ) -> Result<Vec<u8>> {
        let sizes = inputs.iter().map(Vec::len).chain([out]);
        let mut tensors = Vec::new();
        let mut end = 0_u64;
        for size in sizes {
            tensors.push((end + shift, size as u64));
            end = (end + shift + size as u64).next_multiple_of(256);
        }
        let memory = self.device.allocate(end)?;
        let at = |offset| DevicePtr::new(memory.address() + offset).expect("an address");
        let tensors: Vec<_> =
            tensors.into_iter().map(|(offset, size)| (at(offset), size)).collect();
        for (input, (ptr, _)) in inputs.iter().zip(&tensors) {
            self.device.copy_to_device(*ptr, input)?;
        }
        program.enqueue(&self.stream, &tensors)?;
        self.stream.synchronize()?;
        let mut bytes = vec![0; out];
        self.device.copy_to_host(HostBuf::from_slice(&mut bytes), tensors[inputs.len()].0)?;
        self.device.deallocate(memory)?;
        Ok(bytes)
    }

    /// The program has the same result at an odd address.
    fn compare(&self, program: &Program, inputs: &[Vec<u8>], out: usize, size: u64) {
        let [aligned, odd] =
            [0, size].map(|shift| self.result(program, inputs, out, shift).expect("it runs"));
        assert!(aligned.iter().any(|byte| *byte != 0), "{} computes nothing", program.name());
        assert_eq!(aligned, odd, "{}", program.name());
    }
}

/// Small integers.
fn numbers(dtype: DType, len: usize) -> Vec<u8> {
    let numbers = (0..len).map(|index| (index % 7) as f32 - 2.0);
    match dtype {
        DType::Float32 => numbers.flat_map(f32::to_ne_bytes).collect(),
        DType::Float16 => {
            numbers.flat_map(|number| half::f16::from_f32(number).to_ne_bytes()).collect()
        }
        _ => numbers.flat_map(|number| half::bf16::from_f32(number).to_ne_bytes()).collect(),
    }
}

pub(crate) fn odd() {
    let card = card();
    for dtype in [DType::Float32, DType::Float16, DType::Bfloat16] {
        let size = dtype.size().expect("a size");
        let of = |len: usize| numbers(dtype, len);
        let add = bench::elementwise("AddV2", dtype, 1037).expect("a program");
        card.compare(&add, &[of(1037), of(1037)], 1037 * size, size as u64);
        for [rows, inner, columns] in [[33, 20, 17], [64, 64, 64]] {
            let product = bench::matmul(Some(&card.stream), dtype, [rows, inner, columns]);
            let inputs = [of(rows * inner), of(inner * columns)];
            let product = product.expect("a program");
            card.compare(&product, &inputs, rows * columns * size, size as u64);
        }
    }
    let of = |len: usize| numbers(DType::Float32, len);
    let convolve = Convolve::new([1, 9, 8, 4], 3, 1, 8).expect("a convolution");
    let (images, filter, results) = (9 * 8 * 4, 9 * 4 * 8, convolve.shape().iter().product());
    let (first, parts) = convolve.filter(Some(&card.stream)).expect("a program");
    let parts = parts.map_or(1, |(parts, _)| parts);
    for (program, inputs, out) in [
        (convolve.results(), [images, filter], results),
        (convolve.images(), [results, filter], images),
        (Ok(first), [images, results], parts * filter),
    ] {
        let program = program.expect("a program");
        card.compare(&program, &inputs.map(of), out * 4, 4);
    }
}

pub(crate) fn outside() {
    let card = card();
    let program = bench::elementwise("AddV2", DType::Float32, 1024).expect("a program");
    let bytes = 4096;
    let [a, b, out] = [(); 3].map(|()| card.device.allocate(bytes).expect("memory"));
    let further = |ptr: DevicePtr, by| DevicePtr::new(ptr.address() + by).expect("an address");
    for (what, tensors) in [
        ("one byte too many", [(a, bytes), (b, bytes), (out, bytes + 1)]),
        ("one element further", [(further(a, 4), bytes), (b, bytes), (out, bytes)]),
        ("an address of nothing", [(a, bytes), (further(a, 1 << 40), bytes), (out, bytes)]),
    ] {
        let error = program.enqueue(&card.stream, &tensors).expect_err(what);
        assert_eq!(error.code(), Code::InvalidArgument, "{what}: {error}");
    }
    let long = vec![0; bytes as usize + 1];
    let copied = card.device.copy_to_device(a, &long).expect_err("a copy of one byte too many");
    assert_eq!(copied.code(), Code::InvalidArgument, "{copied}");
    card.device.deallocate(b).expect("it is the device's");
    let tensors = [(a, bytes), (b, bytes), (out, bytes)];
    let error = program.enqueue(&card.stream, &tensors).expect_err("memory that was freed");
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    // None of that is for good.
    let tensors = [(a, bytes), (a, bytes), (out, bytes)];
    program.enqueue(&card.stream, &tensors).expect("it runs");
    card.stream.synchronize().expect("it ends");
}
