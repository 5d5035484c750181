//! Runs of a kernel, and what is checked of them.

use super::abi::{Array, Kernel};
use super::inferred;
use super::node::{Node, types_of};
use super::outputs::Outputs;
use super::registry;
use crate::tensor::Tensor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tf_op_plugin::{Error, Result, ensure};

/// A kernel that runs with checks.
#[derive(Debug)]
pub(super) struct Runner {
    kernel: Kernel,
    config: Vec<u8>,
    /// The last shared inputs. As those of constants, their memory stays the same from run to run.
    shared: Mutex<Option<(Vec<Tensor>, Vec<Array>)>>,
}

/// Who uses the inputs of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// The run alone, as within a function.
    Alone,
    /// Others, as in eager calls. Strings are views.
    Shared,
}

/// The name of the kernel's function in violations.
const COMPUTE: &str = "compute";

impl Runner {
    pub(super) fn new(node: &Arc<Node>, config: Vec<u8>) -> Result<Self> {
        let functions = registry::kernel(&node.op, &node.attributes)?;
        let kernel = Kernel::new(Arc::clone(node), functions)?;
        Ok(Self { kernel, config, shared: Mutex::new(None) })
    }

    fn node(&self) -> &Node {
        self.kernel.node()
    }

    /// Runs the kernel with inputs that it alone uses, and with shared ones, then on so many threads. Checks the shape
    /// function.
    pub(super) fn run(&self, inputs: &[Tensor], threads: usize) -> Result<Outputs> {
        let node = self.node();
        let given: Vec<_> = types_of(inputs)?.into_iter().flatten().collect();
        let wanted: Vec<_> = node.inputs.iter().map(|slot| slot.dtype).collect();
        ensure!(
            given == wanted,
            Error::invalid_argument(format!("the node has inputs of {wanted:?}, got {given:?}"))
        );
        // A stateful op may return anything else the next time.
        let result = match node.op.is_stateful {
            true => self.once(inputs, Use::Shared),
            false => {
                let result = self.once(inputs, Use::Alone);
                self.compare(
                    &result,
                    &self.once(inputs, Use::Shared),
                    "with inputs that others use",
                );
                result
            }
        };
        let others: Vec<_> = std::thread::scope(|scope| {
            let run = || scope.spawn(|| self.once(inputs, Use::Shared));
            let threads: Vec<_> = (0..threads).map(|_| run()).collect();
            let panicked = |_| Err(Error::internal("the host panicked"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        if !node.op.is_stateful {
            others.iter().for_each(|other| self.compare(&result, other, "beside other threads"));
        }
        if let Ok(outputs) = &result {
            inferred::check(node, inputs, outputs);
        }
        result
    }

    /// Records a violation for runs whose results differ.
    fn compare(&self, first: &Result<Outputs>, other: &Result<Outputs>, how: &str) {
        const WHY: &str = "TensorFlow merges equal nodes, and computes constants in advance; write `stateful` in `#[op]` if \
                           the result depends on more than the inputs and the attributes";
        let account = &self.node().account;
        match (first, other) {
            (Ok(first), Ok(other)) => {
                for (index, name) in first.names.iter().enumerate() {
                    if first.tensors[index] != other.tensors[index] {
                        account.add(
                            COMPUTE,
                            format!("output {index}, `{name}`, is another one {how}: {WHY}"),
                        );
                    }
                }
            }
            (Err(first), Err(other)) if first.code() == other.code() => {}
            (Err(error), _) => {
                account.add(COMPUTE, format!("the error \"{error}\" is another one {how}: {WHY}"))
            }
            (Ok(_), Err(error)) => account.add(COMPUTE, format!("fails only {how}: {error}")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Vec<Tensor>, Vec<Array>)>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns inputs that others use.
    fn shared(&self, inputs: &[Tensor]) -> Result<Vec<Array>> {
        let mut shared = self.lock();
        if let Some((known, arrays)) = &*shared
            && known == inputs
        {
            return Ok(arrays.clone());
        }
        let new = arrays(inputs, true)?;
        *shared = Some((inputs.to_vec(), new.clone()));
        Ok(new)
    }

    /// Runs the kernel once.
    fn once(&self, inputs: &[Tensor], usage: Use) -> Result<Outputs> {
        let node = self.node();
        let (arrays, held) = match usage {
            Use::Alone => (arrays(inputs, false)?, Vec::new()),
            Use::Shared => {
                let arrays = self.shared(inputs)?;
                (arrays.clone(), arrays)
            }
        };
        let addresses: Vec<usize> = arrays.iter().map(Array::address).collect();
        let outputs = self.kernel.run(arrays, self.config.clone());
        for (index, (held, input)) in held.iter().zip(inputs).enumerate() {
            if held.to_tensor() != *input {
                let name = &node.inputs[index].name;
                node.account.add(
                    COMPUTE,
                    format!("the op has changed input {index}, `{name}`, which others use"),
                );
            }
        }
        let mut tensors = Vec::new();
        let mut reused = Vec::new();
        for (index, (output, slot)) in outputs?.into_iter().zip(&node.outputs).enumerate() {
            let what = format!("output {index}, `{}`,", slot.name);
            let Some(output) = output else {
                node.account.add(
                    COMPUTE,
                    format!("{what} is not set; TensorFlow passes an empty tensor on"),
                );
                return Err(Error::internal(format!("{what} is not set")));
            };
            let tensor = output.to_tensor();
            if tensor.dtype() != Some(slot.dtype) {
                let found = tensor.dtype().map_or_else(String::new, |dtype| dtype.to_string());
                let what = format!("{what} is of {found}, and the definition says {}", slot.dtype);
                node.account.add(COMPUTE, format!("{what}; TensorFlow fails the step"));
                return Err(Error::internal(what));
            }
            let address = output.address();
            reused.push(addresses.iter().position(|one| *one == address && address != 0));
            tensors.push(tensor);
        }
        let names = node.outputs.iter().map(|slot| slot.name.clone()).collect();
        Ok(Outputs { names, tensors, reused })
    }
}

/// Copies inputs, whose strings can be views.
fn arrays(inputs: &[Tensor], views: bool) -> Result<Vec<Array>> {
    let array = |tensor: &Tensor| {
        let shape = || format!("no tensor has the shape {:?}", tensor.shape);
        Array::of(tensor, views).ok_or_else(|| Error::invalid_argument(shape()))
    };
    inputs.iter().map(array).collect()
}
