//! Tests kernels at addresses that are only multiples of an element's size, and at addresses outside of the memory.

use gpu::bench::{self, Addresses, Convolve, Program};
use gpu::{GpuDevice, GpuPlatform, GpuStream};
use se_plugin::kernel::DType;
use se_plugin::{Code, Device as _, DevicePtr, HostBuf, Platform as _, Result, Stream as _};

struct Gpu {
    device: GpuDevice,
    stream: GpuStream,
}

fn gpu() -> Gpu {
    let device = GpuPlatform::new().and_then(|platform| platform.open(0)).expect("a device");
    let stream = device.create_stream().expect("a stream");
    Gpu { device, stream }
}

impl Gpu {
    /// Returns the program's result for inputs in one allocation, each `shift` bytes after an aligned address.
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

    /// Checks that the result is the same at odd addresses, for which there is another program.
    fn compare(
        &self,
        program: impl Fn(Addresses) -> Result<Program>,
        inputs: &[Vec<u8>],
        out: usize,
        size: u64,
    ) {
        let [aligned, odd] =
            [(Addresses::Aligned, 0), (Addresses::Any, size)].map(|(of, shift)| {
                let program = program(of).expect("a program");
                (program.name(), self.result(&program, inputs, out, shift).expect("it runs"))
            });
        assert!(aligned.1.iter().any(|byte| *byte != 0), "{} computes nothing", aligned.0);
        assert_eq!(aligned.1, odd.1, "{}, then {}", aligned.0, odd.0);
    }
}

/// Returns small integers.
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
    let gpu = gpu();
    for dtype in [DType::Float32, DType::Float16, DType::Bfloat16] {
        let size = dtype.size().expect("a size");
        let of = |len: usize| numbers(dtype, len);
        let add = |_| bench::elementwise("AddV2", dtype, 1037);
        gpu.compare(add, &[of(1037), of(1037)], 1037 * size, size as u64);
        for shape @ [rows, inner, columns] in [[33, 20, 17], [64, 64, 64]] {
            let product = |addresses| bench::matmul(Some(&gpu.stream), dtype, shape, addresses);
            let inputs = [of(rows * inner), of(inner * columns)];
            gpu.compare(product, &inputs, rows * columns * size, size as u64);
        }
    }
    let of = |len: usize| numbers(DType::Float32, len);
    let convolve = |addresses| Convolve::new([1, 9, 8, 4], 3, 1, 8, addresses);
    let filters = |addresses| convolve(addresses)?.filter(Some(&gpu.stream));
    let results = convolve(Addresses::Any).expect("a convolution").shape().iter().product();
    let parts = filters(Addresses::Any).expect("a program").1.map_or(1, |(parts, _)| parts);
    let (images, filter) = (9 * 8 * 4, 9 * 4 * 8);
    let compare = |program: &dyn Fn(Addresses) -> Result<Program>, inputs: [usize; 2], out| {
        gpu.compare(program, &inputs.map(of), out * 4, 4);
    };
    compare(&|of| convolve(of)?.results(), [images, filter], results);
    compare(&|of| convolve(of)?.images(), [results, filter], images);
    compare(&|of| Ok(filters(of)?.0), [images, results], parts * filter);
}

/// Checks that a GPU with matrix units uses them to store full tiles, at aligned addresses.
pub(crate) fn full() {
    let gpu = gpu();
    let name = |shape, addresses| {
        let product = bench::matmul(Some(&gpu.stream), DType::Float16, shape, addresses);
        product.expect("a program").name()
    };
    assert_eq!(name([64; 3], Addresses::Aligned), "matmul.full.cooperative");
    assert_eq!(name([64; 3], Addresses::Any), "matmul.cooperative");
    for gaps in [[64, 64, 72], [72, 64, 64], [64, 72, 64], [64, 0, 64]] {
        assert_eq!(name(gaps, Addresses::Aligned), "matmul.cooperative", "{gaps:?}");
    }
    odd();
}

pub(crate) fn outside() {
    let gpu = gpu();
    let program = bench::elementwise("AddV2", DType::Float32, 1024).expect("a program");
    let bytes = 4096;
    let [a, b, out] = [(); 3].map(|()| gpu.device.allocate(bytes).expect("memory"));
    let further = |ptr: DevicePtr, by| DevicePtr::new(ptr.address() + by).expect("an address");
    for (what, tensors) in [
        ("one byte too many", [(a, bytes), (b, bytes), (out, bytes + 1)]),
        ("one element further", [(further(a, 4), bytes), (b, bytes), (out, bytes)]),
        ("an address of nothing", [(a, bytes), (further(a, 1 << 40), bytes), (out, bytes)]),
    ] {
        let error = program.enqueue(&gpu.stream, &tensors).expect_err(what);
        assert_eq!(error.code(), Code::InvalidArgument, "{what}: {error}");
    }
    let long = vec![0; bytes as usize + 1];
    let copied = gpu.device.copy_to_device(a, &long).expect_err("a copy of one byte too many");
    assert_eq!(copied.code(), Code::InvalidArgument, "{copied}");
    gpu.device.deallocate(b).expect("it is the device's");
    let tensors = [(a, bytes), (b, bytes), (out, bytes)];
    let error = program.enqueue(&gpu.stream, &tensors).expect_err("memory that was freed");
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    // Later launches work.
    let tensors = [(a, bytes), (a, bytes), (out, bytes)];
    program.enqueue(&gpu.stream, &tensors).expect("it runs");
    gpu.stream.synchronize().expect("it ends");
}
