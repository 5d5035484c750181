//! The state of one process: worker threads and the memory budget. A forked child makes its own. All stores of a plugin
//! share them.

use crate::MemoryBudget;
use arc_swap::ArcSwapOption;
use nix::sys::signal::SigSet;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tf_fs_plugin::ProcessOrigin;
use tf_fs_plugin::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Worker threads and memory of this process.
#[derive(Debug)]
pub struct Process {
    origin: ProcessOrigin,
    /// Taken only by `drop`.
    runtime: Option<Runtime>,
    /// Memory for data on its way.
    pub budget: Arc<MemoryBudget>,
    /// The budget that each scheme requests, in bytes.
    budgets: Mutex<BTreeMap<&'static str, usize>>,
    /// Files that read ahead now.
    pub(crate) reading: AtomicUsize,
}

static CURRENT: ArcSwapOption<Process> = ArcSwapOption::const_empty();

impl Process {
    /// Returns this process. The first call in it starts `threads` workers, named after `scheme`; a later one only
    /// changes the memory budget, in bytes. Of several schemes the largest budget applies to all of them together.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if a thread cannot be started.
    pub fn current(
        scheme: &'static str,
        threads: usize,
        memory_budget: usize,
    ) -> Result<Arc<Self>> {
        loop {
            let current = CURRENT.load_full();
            if let Some(process) = &current
                && process.is_current()
            {
                let mut budgets = process.budgets.lock().unwrap_or_else(PoisonError::into_inner);
                budgets.insert(scheme, memory_budget);
                process.budget.resize(budgets.values().copied().max().unwrap_or(memory_budget));
                drop(budgets);
                return Ok(Arc::clone(process));
            }
            let new = Arc::new(Self::start(scheme, threads, memory_budget)?);
            let before = CURRENT.compare_and_swap(&current, Some(new));
            if let Some(old) = &*before
                && !old.is_current()
            {
                // The parent's: its threads are not here, so waiting for their end would never end.
                std::mem::forget(Arc::clone(old));
            }
        }
    }

    fn start(scheme: &'static str, threads: usize, memory_budget: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name(scheme)
            .enable_all()
            // Signals are for the threads of the program.
            .on_thread_start(|| {
                let _ = SigSet::all().thread_block();
            })
            .build()
            .map_err(|error| {
                Error::resource_exhausted(format_args!("cannot start threads for {scheme}://"))
                    .with_source(error)
            })?;
        Ok(Self {
            origin: ProcessOrigin::current(),
            runtime: Some(runtime),
            budget: Arc::new(MemoryBudget::new(memory_budget)),
            budgets: Mutex::new(BTreeMap::from([(scheme, memory_budget)])),
            reading: AtomicUsize::new(0),
        })
    }

    /// Returns whether this process made it, rather than a parent before a fork.
    pub fn is_current(&self) -> bool {
        self.origin.is_current()
    }

    /// Runs `future` on the calling thread, which must not be one of the worker threads.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime().block_on(future)
    }

    /// Runs `future` on the worker threads.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime().spawn(future)
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("taken only by `drop`")
    }
}

impl Drop for Process {
    // Runs only for one that lost the race to be the first: a process keeps its threads.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            if self.is_current() {
                runtime.shutdown_timeout(Duration::ZERO);
            } else {
                std::mem::forget(runtime);
            }
        }
    }
}
