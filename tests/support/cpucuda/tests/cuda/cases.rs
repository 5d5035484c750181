//! The cases that the processes run.

use crate::Case;
use crate::abi::{
    Push, address, allocate, compile, fill, free, launch, launch_many, pinned, versions,
};
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::sys::{CUevent_flags, CUresult};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DriverError};
use cudarc::nvrtc::Ptx;
use cudarc::nvrtc::sys::nvrtcResult;
use std::sync::Arc;
use std::time::{Duration, Instant};

const COMMON: (&str, &str) = ("common.h", include_str!("common.h"));
const SUMS: &str = include_str!("sums.cu");
const PLAIN: &str = include_str!("plain.cu");
/// The options, as for a GPU.
const OPTIONS: [&str; 3] = ["--std=c++17", "--fmad=false", "--gpu-architecture=compute_75"];

const LOST: DriverError = DriverError(CUresult::CUDA_ERROR_LAUNCH_FAILED);

const fn works(name: &'static str, run: fn()) -> Case {
    Case { name, run, fault: None, succeeds: true, says: "" }
}

pub(crate) const CASES: &[Case] = &[
    works("device", device),
    works("programs", programs),
    works("programs_with_mistakes", mistakes),
    works("programs_at_the_same_time", same_time),
    works("barriers", barriers),
    works("no_barriers", no_barriers),
    works("threads_that_end_before_a_barrier", early),
    Case { says: "different __syncthreads()", ..works("divergent_barriers", divergent) },
    works("copies", copies),
    works("page_locked_memory", page_locked),
    works("events", events),
    works("out_of_memory", out_of_memory),
    works("ranges", ranges),
    works("no_context", no_context),
    Case {
        says: "freed while queued work uses them",
        succeeds: false,
        ..works("free_in_use", free_in_use)
    },
    Case { succeeds: false, ..works("read_by_the_host", read_by_the_host) },
    Case {
        fault: Some("lost cuLaunchKernel 2"),
        says: "lost in cuLaunchKernel",
        ..works("lost", lost)
    },
    Case {
        fault: Some("lost cuStreamSynchronize 1"),
        says: "lost in cuStreamSynchronize",
        ..works("lost_with_work", lost_with_work)
    },
    Case {
        fault: Some("hang cuLaunchKernel 2"),
        says: "hang in cuLaunchKernel",
        ..works("hang", hang)
    },
];

/// A context with a stream and the programs.
struct Fixture {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    sums: Arc<CudaModule>,
    plain: Arc<CudaModule>,
}

impl Fixture {
    fn new() -> Self {
        let context = CudaContext::new(0).expect("a device");
        let load = |source| {
            let ptx = compile(source, COMMON, &OPTIONS).expect("a program");
            let ptx = Ptx::from_src(String::from_utf8(ptx).expect("text"));
            context.load_module(ptx).expect("a module")
        };
        let (sums, plain) = (load(SUMS), load(PLAIN));
        Self { stream: context.new_stream().expect("a stream"), context, sums, plain }
    }

    fn upload(&self, values: &[f32]) -> CudaSlice<f32> {
        self.stream.clone_htod(values).expect("memory")
    }

    fn zeros(&self, n: usize) -> CudaSlice<f32> {
        self.stream.alloc_zeros(n).expect("memory")
    }

    fn push(&self, input: &CudaSlice<f32>, output: &CudaSlice<f32>, n: usize) -> Push {
        let at = |slice| address(slice, &self.stream);
        Push { input: at(input), output: at(output), n: n as u32 }
    }

    fn of(&self, module: &Arc<CudaModule>, name: &str) -> CudaFunction {
        module.load_function(name).expect("a kernel")
    }
}

fn counted(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i % 100) as f32).collect()
}

fn line(grid: usize, block: u32) -> crate::abi::Grid {
    ((grid as u32, 1, 1), (block, 1, 1))
}

fn device() {
    let context = CudaContext::new(0).expect("a device");
    assert_eq!(versions(), (12_090, (12, 9)));
    assert_eq!(context.name().as_deref(), Ok(cpu_cuda::NAME));
    assert_eq!(context.compute_capability(), Ok((9, 0)));
    assert_eq!(context.total_mem(), Ok(64 << 20));
    assert_eq!(context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE), Ok(32));
    let kept = allocate(1 << 20).expect("memory");
    assert_eq!(kept % 256, 0);
    assert_eq!(context.mem_get_info(), Ok((63 << 20, 64 << 20)));
    free(kept).expect("freed");
    assert_eq!(context.mem_get_info(), Ok((64 << 20, 64 << 20)));
    let error = CudaContext::new(1).expect_err("there is one device");
    assert_eq!(error.error_name().map(|name| name.to_str()), Ok(Ok("CUDA_ERROR_INVALID_DEVICE")));
}

/// Compiles the programs. By hand, this can be tried with NVIDIA's NVRTC too, which needs no GPU.
fn programs() {
    for (source, define) in [(SUMS, "-DSCALE=1"), (PLAIN, "-DSCALE=2"), (PLAIN, "-DSCALE=3")] {
        let options: Vec<&str> = OPTIONS.into_iter().chain([define]).collect();
        compile(source, COMMON, &options).expect("a program");
    }
}

fn mistakes() {
    let fails =
        |source: &str, options: &[&str]| compile(source, COMMON, options).expect_err(source);
    let (error, log) = fails("#include \"common.h\"\n\nint x = unknown;\n", &[]);
    assert_eq!(error, nvrtcResult::NVRTC_ERROR_COMPILATION);
    assert!(log.contains("test.cu:3") || log.contains("test.cu(3)"), "{log}");
    assert!(log.contains("unknown"), "{log}");
    // NVRTC has no system headers.
    let (error, log) = fails("#include <cstdint>\n", &[]);
    assert_eq!(error, nvrtcResult::NVRTC_ERROR_COMPILATION);
    assert!(log.contains("cstdint"), "{log}");
    let (error, _) = fails("", &["--unknown-option"]);
    assert_eq!(error, nvrtcResult::NVRTC_ERROR_INVALID_OPTION);
    let context = CudaContext::new(0).expect("a device");
    let ptx = compile(PLAIN, COMMON, &OPTIONS).expect("a program");
    let module = context.load_module(Ptx::from_src(String::from_utf8(ptx).expect("text")));
    let error = module.expect("a module").load_function("of_cpp").expect_err("it has a C++ name");
    assert_eq!(error, DriverError(CUresult::CUDA_ERROR_NOT_FOUND));
}

fn same_time() {
    let unique = format!("{PLAIN}// {:?} {}", Instant::now(), std::process::id());
    let compiled: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let one = || scope.spawn(|| compile(&unique, COMMON, &OPTIONS).expect("a program"));
        let threads: Vec<_> = (0..3).map(|_| one()).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(compiled.iter().all(|ptx| *ptx == compiled[0]));
    let library = String::from_utf8(compiled[0].clone()).expect("text");
    std::fs::remove_file(library).expect("it is in the cache");
}

fn barriers() {
    const N: usize = 100_000;
    let f = Fixture::new();
    let input = counted(N);
    let a = f.upload(&input);
    let blocks = N.div_ceil(256);
    let b = f.zeros(blocks);
    let push = f.push(&a, &b, N);
    let run = f.of(&f.sums, "run");
    // Twice: the stacks are used again.
    for _ in 0..2 {
        launch(&f.stream, &run, line(blocks, 256), &push).expect("launched");
    }
    let sums: Vec<f32> = input.chunks(256).map(|chunk| chunk.iter().sum()).collect();
    assert_eq!(f.stream.clone_dtoh(&b).expect("copied"), sums);
}

fn no_barriers() {
    const N: usize = 10_000;
    let f = Fixture::new();
    let input = counted(N);
    let a = f.upload(&input);
    let mut b = f.zeros(N);
    let push = f.push(&a, &b, N);
    let run = f.of(&f.plain, "run");
    launch(&f.stream, &run, line(N.div_ceil(256), 256), &push).expect("launched");
    let of = |x: f32| (x.mul_add(x, x.floor()) + x.atan2(1.0) + x + x + x).sqrt().max(1.0);
    for (found, x) in f.stream.clone_dtoh(&b).expect("copied").into_iter().zip(&input) {
        assert!((found - of(*x)).abs() <= of(*x) * 1e-6, "{found}, not {}", of(*x));
    }
    let places = f.of(&f.plain, "places");
    launch(&f.stream, &places, ((5, 4, 3), (8, 4, 2)), &f.push(&a, &b, 3840)).expect("launched");
    let found = f.stream.clone_dtoh(&b).expect("copied");
    assert!(found[..3840].iter().enumerate().all(|(i, &at)| at == i as f32));
    launch_many(&f.stream, &f.of(&f.plain, "of_many"), &a, &mut b).expect("launched");
    let found = f.stream.clone_dtoh(&b).expect("copied");
    assert!(found.iter().zip(&input).all(|(found, x)| *found == x + 1.5));
    for wrong in [line(0, 1), line(1, 0), line(1, 1025), ((1, 1 << 16, 1), (1, 1, 1))] {
        let error = launch(&f.stream, &run, wrong, &push).expect_err("too large or empty");
        assert_eq!(error, DriverError(CUresult::CUDA_ERROR_INVALID_VALUE));
    }
}

fn early() {
    let f = Fixture::new();
    let a = f.upload(&counted(64));
    let b = f.zeros(64);
    let half = f.of(&f.sums, "half");
    launch(&f.stream, &half, line(1, 64), &f.push(&a, &b, 64)).expect("launched");
    let found = f.stream.clone_dtoh(&b).expect("copied");
    assert!(found[..32].iter().enumerate().all(|(i, &x)| x == (31 - i) as f32), "{found:?}");
}

fn divergent() {
    let f = Fixture::new();
    let a = f.zeros(64);
    let diverge = f.of(&f.sums, "diverge");
    launch(&f.stream, &diverge, line(1, 64), &f.push(&a, &a, 64)).expect("launched");
    assert_eq!(f.stream.synchronize(), Err(LOST));
    assert_eq!(allocate(1), Err(LOST));
    std::mem::forget(a);
}

fn copies() {
    const N: usize = 1 << 16;
    let f = Fixture::new();
    let mut input = counted(N);
    let a = f.upload(&input);
    // CUDA has already copied memory that is not page-locked.
    input.fill(-1.0);
    let mut b = f.zeros(N);
    f.stream.memcpy_dtod(&a, &mut b).expect("enqueued");
    let mut output = vec![0.0; N];
    f.stream.memcpy_dtoh(&b, &mut output).expect("copied");
    assert_eq!(output, counted(N));
    fill(&f.stream, address(&b, &f.stream) + 4, 4).expect("enqueued");
    let output = f.stream.clone_dtoh(&b).expect("copied");
    assert_eq!(output[..3], [0.0, f32::from_bits(0x0707_0707), 2.0]);
}

fn page_locked() {
    const N: usize = 1 << 16;
    let f = Fixture::new();
    let mut host = pinned(&f.context, N);
    host.as_mut_slice().expect("not in use").copy_from_slice(&counted(N));
    let mut back = pinned(&f.context, N);
    back.as_mut_slice().expect("not in use").fill(0.0);
    let mut a = f.zeros(N);
    let b = f.zeros(N);
    f.stream.synchronize().expect("done");
    f.stream.memcpy_htod(&host, &mut a).expect("enqueued");
    let push = f.push(&a, &b, N);
    let since = Instant::now();
    launch(&f.stream, &f.of(&f.plain, "slow"), line(1, 1), &push).expect("launched");
    f.stream.memcpy_dtoh(&b, &mut back).expect("enqueued");
    let enqueued = since.elapsed();
    let done = f.stream.record_event(None).expect("an event");
    assert_eq!(done.try_is_complete(), Ok(false));
    done.synchronize().expect("done");
    let took = since.elapsed();
    assert!(enqueued * 2 < took, "the calls took {enqueued:?}, the work {took:?}");
    assert_eq!(back.as_slice().expect("not in use"), counted(N));
}

fn events() {
    const N: usize = 1000;
    let f = Fixture::new();
    let other = f.context.new_stream().expect("a stream");
    let a = f.upload(&counted(N));
    let b = f.zeros(N);
    let c = f.zeros(N);
    let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
    let [start, end] = [(); 2].map(|()| f.context.new_event(timed).expect("an event"));
    assert_eq!(start.try_is_complete(), Ok(true));
    start.record(&f.stream).expect("recorded");
    launch(&f.stream, &f.of(&f.plain, "slow"), line(1, 1), &f.push(&a, &b, N)).expect("launched");
    end.record(&f.stream).expect("recorded");
    // A stream that waits for nothing is not blocked.
    other.synchronize().expect("done");
    assert_eq!(end.try_is_complete(), Ok(false));
    other.wait(&end).expect("enqueued");
    let many = f.of(&f.plain, "slow");
    launch(&other, &many, line(1, 1), &f.push(&b, &c, N)).expect("launched");
    other.synchronize().expect("done");
    assert_eq!(end.try_is_complete(), Ok(true));
    assert_eq!(other.clone_dtoh(&c).expect("copied"), counted(N));
    let took = start.elapsed_ms(&end).expect("both have times");
    assert!(took > 1.0, "{took} ms");
}

fn out_of_memory() {
    let f = Fixture::new();
    let error = DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let kept = allocate(60 << 20).expect("memory");
    assert_eq!(allocate(5 << 20), Err(error));
    assert_eq!(allocate(usize::MAX), Err(error));
    free(kept).expect("freed");
    free(allocate(64 << 20).expect("memory")).expect("freed");
    f.stream.synchronize().expect("nothing is lost");
}

fn ranges() {
    let f = Fixture::new();
    let a = f.zeros(64);
    let at = address(&a, &f.stream);
    let error = Err(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert_eq!(fill(&f.stream, at, 256), Ok(()));
    assert_eq!(fill(&f.stream, at, 257), error);
    assert_eq!(fill(&f.stream, at - 1, 2), error);
    assert_eq!(fill(&f.stream, at + 255, 2), error);
    assert_eq!(fill(&f.stream, at, usize::MAX), error);
    assert_eq!(free(at + 256), error);
    assert_eq!(allocate(0), error.map(|()| 0));
}

fn no_context() {
    assert_eq!(allocate(1), Err(DriverError(CUresult::CUDA_ERROR_NOT_INITIALIZED)));
    let f = Fixture::new();
    let other = std::thread::spawn(|| allocate(1)).join().expect("no panic");
    assert_eq!(other, Err(DriverError(CUresult::CUDA_ERROR_INVALID_CONTEXT)));
    let context = f.context.clone();
    let bound = move || context.bind_to_thread().and_then(|()| allocate(1)).and_then(free);
    assert_eq!(std::thread::spawn(bound).join().expect("no panic"), Ok(()));
}

fn free_in_use() {
    let f = Fixture::new();
    let a = f.zeros(64);
    let b = f.zeros(64);
    launch(&f.stream, &f.of(&f.plain, "slow"), line(1, 1), &f.push(&a, &b, 64)).expect("launched");
    free(address(&b, &f.stream)).expect("the process has ended");
}

/// Checks that all calls fail with the first error.
fn lost() {
    let f = Fixture::new();
    let a = f.upload(&counted(64));
    let b = f.zeros(64);
    let push = f.push(&a, &b, 64);
    let run = f.of(&f.plain, "run");
    let event = f.context.new_event(None).expect("an event");
    launch(&f.stream, &run, line(1, 64), &push).expect("launched");
    assert_eq!(launch(&f.stream, &run, line(1, 64), &push), Err(LOST));
    for again in [
        launch(&f.stream, &run, line(1, 64), &push),
        f.stream.synchronize(),
        event.record(&f.stream),
        event.synchronize(),
        event.try_is_complete().map(drop),
        f.context.synchronize(),
        f.context.new_stream().map(drop),
        allocate(1).map(drop),
        free(address(&a, &f.stream)),
    ] {
        assert_eq!(again, Err(LOST));
    }
    // Calls that need no context work.
    assert_eq!(CudaContext::device_count(), Ok(1));
}

/// Checks that threads that wait for work on a lost GPU wake.
fn lost_with_work() {
    let f = Fixture::new();
    let a = f.zeros(64);
    let push = f.push(&a, &a, 64);
    let slow = f.of(&f.plain, "slow");
    for _ in 0..1000 {
        launch(&f.stream, &slow, line(1, 1), &push).expect("launched");
    }
    let event = f.stream.record_event(None).expect("an event");
    let waiter = std::thread::spawn(move || event.synchronize());
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(f.stream.synchronize(), Err(LOST));
    assert_eq!(waiter.join().expect("no panic"), Err(LOST));
}

fn hang() {
    let f = Fixture::new();
    let other = f.context.new_stream().expect("a stream");
    let a = f.zeros(64);
    let b = f.zeros(64);
    let push = f.push(&a, &b, 64);
    let run = f.of(&f.plain, "run");
    launch(&f.stream, &run, line(1, 64), &push).expect("launched");
    f.stream.synchronize().expect("done");
    launch(&f.stream, &run, line(1, 64), &push).expect("launched");
    let event = f.stream.record_event(None).expect("an event");
    // Other streams continue.
    launch(&other, &run, line(1, 64), &push).expect("launched");
    other.synchronize().expect("done");
    let (stream, context) = (f.stream.clone(), f.context.clone());
    let waiters = [
        std::thread::spawn(move || stream.synchronize().unwrap()),
        std::thread::spawn(move || context.bind_to_thread().and_then(|()| free(1)).unwrap()),
    ];
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(event.try_is_complete(), Ok(false));
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    // Dropping the memory would wait, too.
    std::process::exit(0);
}

fn read_by_the_host() {
    let _fixture = Fixture::new();
    let kept = allocate(1 << 10).expect("memory");
    // The process ends here, without success.
    crate::abi::read(kept);
}
