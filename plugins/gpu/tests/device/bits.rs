//! Tests that sums in several parts have the same bits each time, also when two streams compute at once.

use gpu::bench::{self, Addresses, Convolve, Program};
use gpu::{GpuDevice, GpuPlatform, GpuStream};
use se_plugin::{Device as _, DevicePtr, HostBuf, Platform as _, Stream as _};

/// Programs, each with the places of its tensors, and the number of floats in each tensor.
struct Work {
    programs: Vec<(Program, Vec<usize>)>,
    lens: Vec<usize>,
}

fn normalization(is_gradient: bool, rows: usize, channels: usize) -> Work {
    let (programs, sums) =
        bench::normalize(is_gradient, rows * channels, channels).expect("programs");
    assert_eq!(programs.len(), 2);
    // The gradient has `dy` in the place of the offsets.
    let offsets = if is_gradient { rows } else { 1 };
    let rows = [rows, 1, offsets, 1, 1, rows, 1, 1, 1, 1];
    let lens = rows.map(|rows| rows * channels).into_iter().chain([sums]).collect();
    let programs = programs.into_iter().map(|program| (program, (0..11).collect())).collect();
    Work { programs, lens }
}

/// The gradient of the filter of a convolution with this size.
fn filter(size: usize) -> Work {
    let convolve = Convolve::new([4, 33, 31, 12], size, 1, 20, Addresses::Aligned);
    let convolve = convolve.expect("a convolution");
    let results = convolve.shape().iter().product();
    let (first, sum) = convolve.filter(None).expect("programs");
    let (parts, sum) = sum.expect("parts");
    let len = size * size * 12 * 20;
    let programs = vec![(first, vec![0, 1, 2]), (sum, vec![2, 3])];
    Work { programs, lens: vec![4 * 33 * 31 * 12, results, parts * len, len] }
}

/// Enqueues the work with tensors of its own. Returns their addresses, and the memory.
fn enqueue(gpu: &GpuDevice, stream: &GpuStream, work: &Work) -> (DevicePtr, Vec<(DevicePtr, u64)>) {
    let ends = work.lens.iter().scan(0_u64, |end, len| {
        let start = *end;
        *end = (start + 4 * *len as u64).next_multiple_of(256);
        Some((start, 4 * *len as u64))
    });
    let places: Vec<_> = ends.collect();
    let last = places.last().map_or(0, |(start, bytes)| start + bytes);
    let memory = gpu.allocate(last).expect("memory");
    let at = |offset| DevicePtr::new(memory.address() + offset).expect("an address");
    let tensors: Vec<_> = places.iter().map(|&(start, bytes)| (at(start), bytes)).collect();
    for (&(ptr, _), &len) in tensors.iter().zip(&work.lens) {
        let numbers = (0..len).map(|index| ((index * 7919 % 1009) as f32 * 0.37).fract() + 0.01);
        let numbers: Vec<u8> = numbers.flat_map(f32::to_ne_bytes).collect();
        gpu.copy_to_device(ptr, &numbers).expect("copied");
    }
    for (program, operands) in &work.programs {
        let operands: Vec<_> = operands.iter().map(|&place| tensors[place]).collect();
        program.enqueue(stream, &operands).expect("it runs");
    }
    (memory, tensors)
}

fn bytes(gpu: &GpuDevice, tensors: &[(DevicePtr, u64)]) -> Vec<Vec<u8>> {
    let read = |&(ptr, bytes): &(DevicePtr, u64)| {
        let mut content = vec![0; bytes as usize];
        gpu.copy_to_host(HostBuf::from_slice(&mut content), ptr).expect("copied");
        content
    };
    tensors.iter().map(read).collect()
}

pub(crate) fn are_the_same() {
    let gpu = GpuPlatform::new().and_then(|platform| platform.open(0)).expect("a device");
    let streams = [(); 2].map(|()| gpu.create_stream().expect("a stream"));
    for work in [
        normalization(false, 1500, 12),
        normalization(true, 1500, 12),
        normalization(true, 700, 37),
        filter(1),
        filter(3),
    ] {
        let mut first = None;
        for _ in 0..5 {
            let runs = streams.each_ref().map(|stream| enqueue(&gpu, stream, &work));
            for (stream, (memory, tensors)) in streams.iter().zip(runs) {
                stream.synchronize().expect("it ends");
                let found = bytes(&gpu, &tensors);
                let expected = first.get_or_insert_with(|| found.clone());
                assert!(*expected == found, "{}: other bits", work.programs[0].0.name());
                gpu.deallocate(memory).expect("it is the device's");
            }
        }
    }
}
