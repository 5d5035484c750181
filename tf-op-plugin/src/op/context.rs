//! One run of an op.

use super::spec::Spec;
use crate::abi::cpu::Run;
use crate::kernel::Element;
use crate::parallel;
use crate::tensor::{Place, Role, Storage, Tensor, TensorBuf};
use core::fmt;
use core::ops::Range;
use std::borrow::Cow;
use tf_plugin_core::{Error, Result, ResultExt as _};

/// One run of an op. `OpContext::default()` is one for tests, without TensorFlow.
#[derive(Clone, Copy, Default)]
pub struct OpContext<'a> {
    run: Option<&'a Run<'a>>,
    spec: Option<&'a Spec>,
    /// The Rust type of the op, for error texts.
    op: Option<&'static str>,
}

impl<'a> OpContext<'a> {
    pub(super) const fn new(run: &'a Run<'a>, spec: &'a Spec, op: &'static str) -> Self {
        Self { run: Some(run), spec: Some(spec), op: Some(op) }
    }

    /// Returns the run, which tests do not have.
    pub(crate) fn run(&self) -> Result<&Run<'a>> {
        self.run.ok_or_else(|| Error::internal("there is no TensorFlow"))
    }

    /// Returns the name of the node, such as `model/TextWords`; empty without TensorFlow.
    #[must_use]
    pub fn node_name(&self) -> Cow<'_, str> {
        self.run.map_or(Cow::Borrowed(""), Run::node_name)
    }

    /// Splits work over threads: calls `work` for parts of `0..len`, such as those of a batch, and returns the results in the
    /// order of the parts. A part has at least `grain` items, except for the last; less work than about 100 µs is not worth a
    /// thread.
    ///
    /// The calling thread works, too. It has help from at most `intra_op_parallelism_threads - 1` others, which all runs of
    /// this library's ops share, so that many runs at once do not overload the CPU. Without help the thread does all the
    /// work.
    ///
    /// ```
    /// use tf_op_plugin::OpContext;
    ///
    /// let texts = ["a", "b", "c"];
    /// let parts = OpContext::default().parallel(texts.len(), 100, |part| Ok(texts[part].concat()))?;
    /// assert_eq!(parts.concat(), "abc");
    /// # Ok::<(), tf_op_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first of `work`; a panic of it is an error, too.
    pub fn parallel<C: Send>(
        &self,
        len: usize,
        grain: usize,
        work: impl Fn(Range<usize>) -> Result<C> + Sync,
    ) -> Result<Vec<C>> {
        parallel::run(self.op(), self.threads(), len, grain, work)
    }

    /// Splits a slice over threads, such as the elements of an output, as [`parallel`](Self::parallel) does: calls `work` for
    /// parts of `grain` items with the index of the first.
    ///
    /// ```
    /// use tf_op_plugin::{OpContext, TensorBuf};
    ///
    /// let mut squares = TensorBuf::zeros([1000])?;
    /// OpContext::default().parallel_mut(&mut squares, 100, |start, part| {
    ///     part.iter_mut().enumerate().for_each(|(at, square)| *square = ((start + at) as i64).pow(2));
    ///     Ok(())
    /// })?;
    /// assert_eq!(squares[999], 998_001);
    /// # Ok::<(), tf_op_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first of `work`; a panic of it is an error, too.
    pub fn parallel_mut<T: Send>(
        &self,
        items: &mut [T],
        grain: usize,
        work: impl Fn(usize, &mut [T]) -> Result<()> + Sync,
    ) -> Result<()> {
        parallel::run_mut(self.op(), self.threads(), items, grain, work)
    }

    fn op(&self) -> &'static str {
        self.op.unwrap_or("an op")
    }

    /// Returns `f` of each item, split over threads as [`parallel`](Self::parallel) does. Faster than
    /// [`parallel_mut`](Self::parallel_mut) on zeros, which one thread writes first.
    ///
    /// ```
    /// use tf_op_plugin::{OpContext, Tensor};
    ///
    /// let x = Tensor::new([2, 2], [1.0_f32, 2.0, 3.0, 4.0])?;
    /// let y = OpContext::default().parallel_map(&x, 10_000, |x| x.sqrt())?.with_shape(x.shape())?;
    /// assert_eq!(y[3], 2.0);
    /// # Ok::<(), tf_op_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    /// A panic of `f`; `RESOURCE_EXHAUSTED` if there is no memory.
    pub fn parallel_map<I: Sync, T: Element>(
        &self,
        items: &[I],
        grain: usize,
        f: impl Fn(&I) -> T + Sync,
    ) -> Result<TensorBuf<T>> {
        let mut buf = TensorBuf::with_capacity(items.len());
        buf.elements.extend_parallel(self.op(), self.threads(), grain, items, f)?;
        Ok(buf)
    }

    /// Returns the number of threads that a run may use.
    fn threads(&self) -> usize {
        self.run.map_or_else(parallel::default_threads, Run::threads)
    }

    /// Changes the elements of an input in place, and returns them for the output with the index `output`, counted in
    /// tensors. They are in the input's memory if nothing else uses it, as within a `tf.function`, and else in a copy.
    ///
    /// ```
    /// use tf_op_plugin::{OpContext, Tensor};
    ///
    /// let x = Tensor::new([2], [1.0_f32, 2.0])?;
    /// let y = OpContext::default().reuse(x, 0, |x| Ok(x.reverse()))?;
    /// assert_eq!(y.as_slice(), [2.0, 1.0]);
    /// # Ok::<(), tf_op_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `change`; `INTERNAL` if there is no such output, it is of another type, or it exists already.
    pub fn reuse<T: Element>(
        &self,
        tensor: Tensor<T>,
        output: usize,
        change: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<Tensor<T>> {
        let storage = match tensor.storage {
            Storage::Own(mut elements, shape) => {
                change(elements.as_mut_slice())?;
                Storage::Own(elements, shape)
            }
            Storage::Host(host, role) => {
                let run = self.run()?;
                match role.place_in(run) {
                    Some(Place::Input(input)) => {
                        let place = Place::Output(output);
                        let host = run.forward(input, host, output, change)?;
                        Storage::Host(host, Role { run: run.identity(), place })
                    }
                    Some(Place::Output(_)) => {
                        return Err(Error::internal("`reuse` was called with an output"));
                    }
                    // Of another run: its memory is not this run's to pass on.
                    None => {
                        let mut elements = TensorBuf::new();
                        elements.extend_from_slice(host.as_slice());
                        change(&mut elements)?;
                        return elements.with_shape(host.shape());
                    }
                }
            }
        };
        Ok(Tensor { storage })
    }

    /// Replaces each element of an input by `f` of it, and returns them for the output with the index `output`, where
    /// [`reuse`](Self::reuse) does. Faster than that where the memory is new: the elements are not copied first.
    ///
    /// ```
    /// use tf_op_plugin::{OpContext, Tensor};
    ///
    /// let x = Tensor::new([2], [1.0_f32, 2.0])?;
    /// let y = OpContext::default().reuse_map(x, 0, |x| 2.0 * x)?;
    /// assert_eq!(y.as_slice(), [2.0, 4.0]);
    /// # Ok::<(), tf_op_plugin::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INTERNAL` if there is no such output, it is of another type, or it exists already.
    pub fn reuse_map<T: Element>(
        &self,
        tensor: Tensor<T>,
        output: usize,
        mut f: impl FnMut(T) -> T,
    ) -> Result<Tensor<T>> {
        if let (Storage::Host(_, role), Ok(run)) = (&tensor.storage, self.run())
            && let Some(Place::Input(input)) = role.place_in(run)
            && let Storage::Host(host, _) = tensor.storage
        {
            let role = Role { run: run.identity(), place: Place::Output(output) };
            let host = run.forward_map(input, host, output, f)?;
            return Ok(Tensor { storage: Storage::Host(host, role) });
        }
        self.reuse(tensor, output, |elements| {
            elements.iter_mut().for_each(|element| *element = f(*element));
            Ok(())
        })
    }

    /// Reads an input, and adds its name to an error.
    #[inline]
    pub(super) fn named_input<T>(
        &self,
        index: usize,
        read: impl FnOnce(&'static str) -> Result<T>,
    ) -> Result<T> {
        let args = self.spec.map_or(&[][..], |spec| spec.inputs);
        let name = args.get(index).map_or("", |arg| arg.name);
        read(name).context(format_args!("input `{name}`"))
    }

    /// Adds the name of an output to an error.
    #[inline]
    pub(super) fn named_output<T>(&self, index: usize, result: Result<T>) -> Result<T> {
        let args = self.spec.map_or(&[][..], |spec| spec.outputs);
        let name = args.get(index).map_or("", |arg| arg.name);
        result.context(format_args!("output `{name}`"))
    }
}

impl fmt::Debug for OpContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpContext").field("node", &self.node_name()).finish_non_exhaustive()
    }
}
