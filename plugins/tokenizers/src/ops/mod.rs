//! The ops.
//!
//! The JSON is an input of each op, a constant of the graph: a SavedModel holds it, wherever it is moved. Python's side,
//! `python/tensorflow_tokenizers`, passes it.

mod attributes;
mod detokenize;
mod encode;
mod known;
mod tokenize;
mod vocabulary;

use tf_op_plugin::{Element, Error, Result, TensorBuf, ensure};

/// A type of ids.
trait Id: Element {
    const MAX: u32;
    /// The id of a token that does not exist.
    const UNKNOWN: Self;

    fn of(id: u32) -> Self;

    fn get(self) -> i64;
}

impl Id for i32 {
    const MAX: u32 = i32::MAX.unsigned_abs();
    const UNKNOWN: Self = -1;

    fn of(id: u32) -> Self {
        id.cast_signed()
    }

    fn get(self) -> i64 {
        self.into()
    }
}

impl Id for i64 {
    const MAX: u32 = u32::MAX;
    const UNKNOWN: Self = -1;

    fn of(id: u32) -> Self {
        id.into()
    }

    fn get(self) -> i64 {
        self
    }
}

/// Appends ids to an output.
fn extend<T: Id>(output: &mut TensorBuf<T>, ids: &[u32]) -> Result<()> {
    check::<T>(ids)?;
    output.extend(ids.iter().map(|&id| T::of(id)));
    Ok(())
}

/// Checks that ids fit into their type.
fn check<T: Id>(ids: &[u32]) -> Result<()> {
    let largest = ids.iter().copied().max().unwrap_or(0);
    ensure!(
        largest <= T::MAX,
        Error::invalid_argument(format!(
            "id {largest} does not fit into {}; set out_type to tf.int64",
            T::DTYPE
        ))
    );
    Ok(())
}
