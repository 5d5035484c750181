//! Kernels that enqueue work, and copies from the host that must not overtake it.

use super::work::{Progress, Running, WaitingStream, Work};
use crate::{explore, spawn_with};
use loom::thread;
use std::collections::BTreeSet;
// Not loom's: what they order would hide what the model is about.
use std::sync::{Arc, Mutex, MutexGuard};
use tf_plugin_core::Result;

#[derive(Default)]
struct Device {
    work: Work<Stream>,
    /// Kernels whose work is done.
    done: Mutex<BTreeSet<u32>>,
}

struct Stream {
    device: Arc<Device>,
    progress: Progress,
    /// Kernels whose work is before what is enqueued from now on.
    queue: Mutex<BTreeSet<u32>>,
}

impl WaitingStream for Stream {
    fn work(&self) -> &Work<Self> {
        &self.device.work
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn follow(&self, other: &Self) -> Result<()> {
        let there = other.queue().clone();
        self.queue().extend(there);
        Ok(())
    }
}

impl Stream {
    fn new(device: &Arc<Device>) -> Arc<Self> {
        let (progress, queue) = Default::default();
        Arc::new(Self { device: Arc::clone(device), progress, queue })
    }

    fn queue(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.queue.lock().unwrap()
    }

    /// A kernel runs and returns.
    fn kernel(self: &Arc<Self>, kernel: u32) {
        let running = Running::on(&**self, || Arc::downgrade(self));
        self.queue().insert(kernel);
        drop(running);
    }

    /// TensorFlow has the memory of these kernels, and copies over it.
    fn copy(&self, kernels: &[u32]) {
        self.wait_for_work().unwrap();
        let done = self.device.done.lock().unwrap();
        let queue = self.queue();
        for kernel in kernels {
            assert!(
                queue.contains(kernel) || done.contains(kernel),
                "a copy overwrites what kernel {kernel} still reads"
            );
        }
    }

    /// The host destroys the stream, which drains it.
    fn destroy(self: Arc<Self>) {
        let there = self.queue().clone();
        self.device.done.lock().unwrap().extend(there);
    }
}

/// Two kernels are the first of a stream at the same time; a copy in another stream overwrites what either read.
pub fn first_kernels_of_a_stream() {
    explore(|| {
        let device = Arc::new(Device::default());
        let [compute, copies] = [(); 2].map(|()| Stream::new(&device));
        let first = spawn_with(Arc::clone(&compute), |compute| compute.kernel(1));
        let shares = (Arc::clone(&compute), Arc::clone(&copies));
        let second = spawn_with(shares, |(compute, copies)| {
            compute.kernel(2);
            copies.copy(&[2]);
        });
        first.join().unwrap();
        second.join().unwrap();
        copies.copy(&[1, 2]);
    });
}

/// A stream waits for another one while a third gets its first kernels: that was not all work.
pub fn waiting_for_one_stream_of_two() {
    explore(|| {
        let device = Arc::new(Device::default());
        let [old, new, copies] = [(); 3].map(|()| Stream::new(&device));
        old.kernel(1);
        let first = spawn_with(Arc::clone(&new), |new| new.kernel(2));
        let shares = (Arc::clone(&old), Arc::clone(&new), Arc::clone(&copies));
        let second = spawn_with(shares, |(old, new, copies)| {
            new.kernel(3);
            copies.wait_for(&old).unwrap();
            copies.copy(&[1, 3]);
        });
        first.join().unwrap();
        second.join().unwrap();
        copies.copy(&[1, 2, 3]);
    });
}

/// A stream waits for one of another device: its own work is not all that it waits for.
pub fn waiting_for_a_stream_of_another_device() {
    explore(|| {
        let devices = [(); 2].map(|()| Arc::new(Device::default()));
        let [compute, copies] = [(); 2].map(|()| Stream::new(&devices[0]));
        let other = Stream::new(&devices[1]);
        compute.kernel(1);
        other.kernel(2);
        copies.wait_for(&other).unwrap();
        copies.copy(&[1]);
    });
}

/// Two threads copy in one stream, each after its own kernel.
pub fn two_copies_in_one_stream() {
    explore(|| {
        let device = Arc::new(Device::default());
        let copies = Stream::new(&device);
        let threads = [1, 2].map(|kernel| {
            let (compute, copies) = (Stream::new(&device), Arc::clone(&copies));
            thread::spawn(move || {
                compute.kernel(kernel);
                copies.copy(&[kernel]);
                compute
            })
        });
        let _streams = threads.map(|thread| thread.join().unwrap());
        copies.copy(&[1, 2]);
    });
}

/// A stream is destroyed while another one waits for all.
pub fn a_stream_goes_while_others_wait() {
    explore(|| {
        let device = Arc::new(Device::default());
        let [old, new, copies] = [(); 3].map(|()| Stream::new(&device));
        old.kernel(1);
        let host = thread::spawn(move || old.destroy());
        let kernels = thread::spawn(move || {
            new.kernel(2);
            copies.copy(&[1, 2]);
            copies.wait_for(&new).unwrap();
            copies.copy(&[1, 2]);
        });
        host.join().unwrap();
        kernels.join().unwrap();
    });
}
